import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { freePort } from "../harness/free-port.ts";
import { ROOT } from "../harness/program.ts";
import { temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { makeCertificate } from "./certificate.ts";

/** The host for which the files in examples/proxy are written. */
export const HOST = "chartroom.example.org";

/** A reverse proxy that runs as a plain user, with its file from examples/proxy. */
export interface RunningProxy {
  readonly port: number;
  /** The authority that signed its certificate, in PEM. */
  readonly ca: string;
  /** Ends it and what runs with it. */
  stop(): Promise<void>;
}

/** Starts a proxy over servers at these addresses, such as `127.0.0.1:8080`. */
export type StartProxy = (servers: readonly string[]) => Promise<RunningProxy>;

/** Root may listen anywhere and read everything; a proxy does not need that. `nobody` is on every Debian machine. */
const PLAIN_USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;

/** Where the files of examples/proxy look for theirs. */
const FOLDERS = /\/etc\/(nginx|caddy)\//g;

/** A program of a proxy that goes on until it is stopped. */
function start(folder: string, command: string, args: readonly string[], env = {}): ChildProcess {
  const child = spawn(command, args, {
    ...PLAIN_USER,
    cwd: folder,
    env: { PATH: `${process.env.PATH}:/usr/sbin`, HOME: folder, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-10_000);
    });
  }
  child.once("exit", (code, signal) => {
    if (code !== 0 && signal === null) process.stderr.write(`${command} ended with ${code}:\n${output}\n`);
  });
  return child;
}

/** Creates the folder in which a proxy finds its files, all of them its user's own. */
function folderOf(files: Readonly<Record<string, string>>): { folder: string; ca: string } {
  const folder = temporaryFolder();
  const ca = makeCertificate(folder, HOST);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text.replaceAll(FOLDERS, `${folder}/`));
  }
  if (PLAIN_USER) {
    for (const path of ["", ...readdirSync(folder)]) {
      chownSync(join(folder, path), PLAIN_USER.uid, PLAIN_USER.gid);
    }
  }
  chmodSync(folder, 0o700);
  return { folder, ca };
}

/** Returns a file of examples/proxy in which each text is replaced, all of which it must contain. */
function example(name: string, replacements: readonly (readonly [text: string, by: string])[]): string {
  return replacements.reduce(
    (file, [text, by]) => {
      if (!file.includes(text)) throw new Error(`examples/proxy/${name} has no "${text}"`);
      return file.replace(text, by);
    },
    readFileSync(join(ROOT, "examples/proxy", name), "utf8"),
  );
}

/** Waits until a proxy takes connections. */
async function listening(child: ChildProcess, port: number): Promise<void> {
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: "127.0.0.1", servername: HOST, rejectUnauthorized: false });
      socket.once("secureConnect", () => resolve(true)).once("error", () => resolve(false));
      socket.once("close", () => resolve(false)).once("secureConnect", () => socket.destroy());
    });
  await until(async () => child.exitCode !== null || (await accepts()), Boolean);
  if (child.exitCode !== null) throw new Error(`the proxy ended with ${child.exitCode}`);
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

/** What Debian's nginx.conf has around the files of conf.d, for a user of its own. */
function nginxAround(folder: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/temporary-${name};`,
  );
  return [
    "daemon off;",
    "worker_processes 2;",
    `pid ${folder}/nginx.pid;`,
    "events { worker_connections 512; }",
    "http {",
    "access_log off;",
    ...temporary,
    `include ${folder}/chartroom.conf;`,
    "}",
  ].join("\n");
}

/** Starts nginx, and next to it the program that keeps servers that are not ready out of it. */
export const startNginx: StartProxy = async (servers) => {
  const port = await freePort();
  const { folder, ca } = folderOf({
    "chartroom.conf": example("nginx.conf", [["listen 443 ", `listen 127.0.0.1:${port} `]]),
    "chartroom-servers.conf": servers.map((server) => `server ${server};\n`).join(""),
    "nginx-ready.sh": example("nginx-ready.sh", []),
  });
  writeFileSync(join(folder, "around.conf"), nginxAround(folder));
  const args = ["-p", folder, "-c", join(folder, "around.conf"), "-e", join(folder, "error.log")];
  const nginx = start(folder, "nginx", args);
  await listening(nginx, port);
  const list = join(folder, "chartroom-servers.conf");
  const ready = start(folder, "sh", [join(folder, "nginx-ready.sh"), list, ...servers], {
    NGINX_RELOAD: ["nginx", ...args, "-s", "reload"].join(" "),
  });
  return {
    port,
    ca,
    async stop() {
      await end(ready, "SIGTERM");
      // Its workers end with it.
      await end(nginx, "SIGTERM");
    },
  };
};

/** Starts Caddy. */
export const startCaddy: StartProxy = async (servers) => {
  const port = await freePort();
  const { folder, ca } = folderOf({
    Caddyfile: example("Caddyfile", [
      ["https_port 443", `https_port ${port}\n\tdefault_bind 127.0.0.1\n\tadmin off`],
      ["h2c://10.0.0.11:8080 h2c://10.0.0.12:8080", servers.map((server) => `h2c://${server}`).join(" ")],
    ]),
  });
  const caddy = start(folder, "caddy", [
    "run",
    "--config",
    join(folder, "Caddyfile"),
    "--adapter",
    "caddyfile",
  ]);
  await listening(caddy, port);
  return { port, ca, stop: () => end(caddy, "SIGKILL") };
};
