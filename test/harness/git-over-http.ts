import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ScmState } from "./scm-state.ts";

const GIT_PATH = /^\/(.+?)(?:\.git)?(\/(?:info\/refs|git-upload-pack|git-receive-pack))$/;

/** Returns whether a request belongs to git's smart HTTP protocol. */
export function isGitRequest(target: string): boolean {
  return GIT_PATH.test(target.replace(/\?.*/, ""));
}

/**
 * Serves a repository of the host with git's own CGI program; fetches and pushes need the token as
 * password.
 */
export function handleGitRequest(
  state: ScmState,
  token: string,
  req: IncomingMessage,
  res: ServerResponse,
): void {
  const url = new URL(req.url ?? "", state.url);
  const [, path = "", inside = ""] = GIT_PATH.exec(url.pathname) ?? [];
  const [, password] = Buffer.from(req.headers.authorization?.replace(/^Basic /, "") ?? "", "base64")
    .toString("utf8")
    .split(":");
  if (password !== token) {
    res.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    return;
  }
  const folder = state.repository(path)?.folder;
  if (folder === undefined) {
    res.writeHead(404).end();
    return;
  }
  const cgi = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: inside,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: req.method,
      REMOTE_USER: "git",
      CONTENT_TYPE: req.headers["content-type"] ?? "",
      ...(req.headers["content-length"] && { CONTENT_LENGTH: req.headers["content-length"] }),
      ...(req.headers["content-encoding"] && { HTTP_CONTENT_ENCODING: req.headers["content-encoding"] }),
      ...(req.headers["git-protocol"] && { GIT_PROTOCOL: String(req.headers["git-protocol"]) }),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  // When the client disconnects, the program has nobody to write to.
  res.on("close", () => cgi.kill());
  cgi.stdin.on("error", () => {});
  req.pipe(cgi.stdin);
  const chunks: Buffer[] = [];
  cgi.stdout.on("data", (chunk) => chunks.push(chunk));
  cgi.on("close", () => {
    const output = Buffer.concat(chunks);
    const end = output.indexOf("\r\n\r\n");
    const head = output.subarray(0, Math.max(end, 0)).toString("latin1").split("\r\n");
    const headers = head.map((line) => line.split(": ", 2) as [string, string]);
    const status = Number(headers.find(([name]) => name === "Status")?.[1]?.slice(0, 3) ?? 200);
    res.writeHead(status, Object.fromEntries(headers.filter(([name]) => name && name !== "Status")));
    res.end(output.subarray(end + 4));
  });
}
