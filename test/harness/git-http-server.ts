import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

/** Repositories over real HTTP, served by git's own CGI program. */
export interface GitHttpServer {
  /** http://127.0.0.1:<port> */
  readonly url: string;
  readonly port: number;
  /** Every request so far. */
  readonly requests: {
    readonly path: string;
    readonly host: string;
    readonly authorization: string | undefined;
  }[];
  close(): Promise<void>;
}

export interface GitHttpOptions {
  /** Requests with other credentials get 401. */
  readonly credential?: { readonly user: string; readonly password: string };
  /** Handles a request itself and returns true, or returns false to pass it on. */
  readonly before?: (req: IncomingMessage, res: ServerResponse) => boolean;
}

/** Serves every repository below a folder and accepts pushes. */
export async function serveGit(
  folder: string,
  { credential, before }: GitHttpOptions = {},
): Promise<GitHttpServer> {
  const backend = join(execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim(), "git-http-backend");
  const expected =
    credential && `Basic ${Buffer.from(`${credential.user}:${credential.password}`).toString("base64")}`;
  const requests: GitHttpServer["requests"] = [];
  const server = createServer((req, res) => {
    const { authorization, host = "" } = req.headers;
    requests.push({ path: req.url ?? "", host, authorization });
    if (before?.(req, res)) return;
    if (expected !== undefined && authorization !== expected) {
      res.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    } else {
      runGitBackend(backend, folder, req, res).catch((error) => res.destroy(error));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** Implements as much of CGI as git's program uses. */
async function runGitBackend(
  backend: string,
  folder: string,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(req.url ?? "/", "http://localhost");
  const child = spawn(backend, {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "http.receivepack",
      GIT_CONFIG_VALUE_0: "true",
      PATH_INFO: decodeURIComponent(pathname),
      QUERY_STRING: searchParams.toString(),
      REQUEST_METHOD: req.method,
      CONTENT_TYPE: req.headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: req.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(req.headers["git-protocol"] ?? ""),
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  req.pipe(child.stdin);
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  const end = whole.indexOf("\r\n\r\n");
  for (const line of whole.subarray(0, end).toString().split("\r\n")) {
    const [name = "", value = ""] = line.split(/: (.*)/s);
    if (name.toLowerCase() === "status") res.statusCode = Number.parseInt(value, 10);
    else res.setHeader(name, value);
  }
  res.end(whole.subarray(end + 4));
}
