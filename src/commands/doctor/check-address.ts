import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { createServer } from "node:net";
import { type Config, ConfigError } from "../../config/config.ts";
import { toListenError } from "../listen-error.ts";
import { type Finding, ok, wrong } from "./finding.ts";

/** How long a program at the server's port may take to say what it is. */
const ANSWER_MS = 2_000;

/** Checks whether a server can listen at its host and port, or one already does. */
export async function checkAddress(config: Config): Promise<Finding[]> {
  const { host, port } = config;
  if (port === 0) return [];
  const error = await listenBriefly(config);
  if (!error) return [ok("address", `port ${port} of ${host} is free`)];
  if (error.code === "EADDRINUSE" && (await isChartroom(config))) {
    if (await isOfOtherData(config))
      return [
        wrong(
          "address",
          `a Chartroom server listens at port ${port} of ${host}, but none uses this data folder`,
          "stop that server, or choose another --port; or name its data folder with --data-dir",
        ),
      ];
    return [ok("address", `a Chartroom server listens at port ${port} of ${host}`)];
  }
  const problem = toListenError(config, error);
  const texts = problem instanceof ConfigError ? problem.problems : [problem.message];
  return texts.map((text) => wrong("address", text));
}

function listenBriefly({ host, port }: Config): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen({ host, port }, () => server.close(() => resolve(undefined)));
  });
}

/** Returns whether no server uses the data folder. Servers on PostgreSQL do not lock theirs. */
async function isOfOtherData({ dataDir, databaseUrl }: Config): Promise<boolean> {
  if (databaseUrl) return false;
  return (await import("../../store/sqlite/lock.ts")).isFolderLocked(dataDir) === false;
}

/** Returns whether the program at the server's address says at /version that it is Chartroom. */
function isChartroom({ host, port, tlsCert }: Config): Promise<boolean> {
  // Every interface includes this machine's own.
  const hostname = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const options = { hostname, port, path: "/version", timeout: ANSWER_MS, agent: false };
  return new Promise((resolve) => {
    const request =
      // Nothing secret is sent, and the certificate may be for the name of a proxy.
      tlsCert === "" ? requestHttp(options) : requestHttps({ ...options, rejectUnauthorized: false });
    request.once("error", () => resolve(false));
    request.once("timeout", () => request.destroy(new Error("no answer")));
    request.once("response", async (response) => {
      response.setEncoding("utf8");
      const text = await response.toArray().catch(() => []);
      resolve(/"name":\s*"chartroom"/.test(text.join("")));
    });
    request.end();
  });
}
