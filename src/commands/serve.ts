import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { type Config, ConfigError } from "../config.ts";
import type { Keys } from "../keys.ts";
import { createLog } from "../log.ts";
import { build } from "../server.ts";
import { foundOrganization } from "../services/found-organization.ts";
import { hasOrganization } from "../store/organization.ts";
import { lockFolder } from "../store/sqlite/lock.ts";
import type { Store } from "../store/store.ts";
import type { Running, Terminal } from "./command-line.ts";
import { openData, usable } from "./open-data.ts";
import { StartError } from "./start-error.ts";

/**
 * Starts the server and tells where it is; on the first start it makes an
 * organization with its administrator and shows one access token.
 *
 * @throws ConfigError or StartError when it cannot start
 */
export async function serve(config: Config, terminal: Terminal): Promise<Running> {
  checkTls(config);
  const lock = usable(config, () => lockFolder(config.dataDir));
  if (!lock) throw new StartError(`another server already uses the data folder ${config.dataDir}`);
  const log = createLog(config.logLevel);
  const { store, keys } = await openData(config, (migration) => {
    log.info({ migration }, "bringing the data to this release; with a million projects it takes a minute");
  }).catch((error) => {
    lock.release();
    throw error;
  });
  const stopStore = async () => {
    await store.close();
    lock.release();
  };
  try {
    const server = build(config, { store, keys, log, now: Date.now });
    const url = await server.listen().catch((error) => {
      throw listenProblem(config, error);
    });
    log.info({ url, dataDir: config.dataDir }, "listening");
    terminal.print(`Chartroom is ready at ${url}\n`);
    if (!(await hasOrganization(store.reader))) terminal.print(welcome(url, await firstToken(store, keys)));
    const localRunner = config.localRunner
      ? await (await import("./local-runner.ts")).startLocalRunner(config, {
          server,
          url,
          store,
          keys,
          log,
          terminal,
        })
      : undefined;
    return {
      async stop() {
        log.info({}, "stopping");
        // First, while the server still takes what it has to say of its work.
        await localRunner?.stop();
        await server.close();
        await stopStore();
        log.info({}, "stopped");
      },
    };
  } catch (error) {
    await stopStore();
    throw error;
  }
}

/** Tells what is wrong with the files of TLS before anything is made in the data folder. */
function checkTls({ tlsCert, tlsKey }: Config): void {
  if (tlsCert === "") return;
  const problems: string[] = [];
  const read = (flag: string, file: string) => {
    try {
      return readFileSync(file);
    } catch (error) {
      problems.push(`${flag} ${file} cannot be read: ${(error as Error).message}`);
      return undefined;
    }
  };
  const [cert, key] = [read("--tls-cert", tlsCert), read("--tls-key", tlsKey)];
  try {
    if (cert && key) createSecureContext({ cert, key });
  } catch (error) {
    problems.push(`--tls-cert and --tls-key cannot be used together: ${(error as Error).message}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

async function firstToken(store: Store, keys: Keys): Promise<string> {
  const { token } = await foundOrganization(store, keys, {
    operation: "chartroom serve",
    organizationName: "My organization",
    accountName: "Administrator",
    email: "admin@localhost",
    tokenDescription: "first start",
  });
  return token;
}

function welcome(url: string, token: string): string {
  return `
This is the first start: an organization and its administrator were made.
The administrator's access token, valid for 30 days, is shown this once:

  ${token}

Store a project with it:

  curl ${url}/api/service.v1.ProjectService/CreateProject \\
    -H 'Authorization: Bearer ${token}' \\
    -H 'Content-Type: application/json' \\
    -d '{"initializer": {"specs": [{"git": {"remoteUri": "https://git.example.org/team/hello.git"}}]}}'

`;
}

function listenProblem(config: Config, error: NodeJS.ErrnoException): Error {
  if (error.code === "EADDRINUSE") {
    return new ConfigError([
      `--port ${config.port} is in use on ${config.host}; stop what uses it or choose another`,
    ]);
  }
  if (error.code === "EACCES") return new ConfigError([`--port ${config.port} may not be used by this user`]);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    return new ConfigError([`--host ${config.host} is no address of this machine`]);
  }
  return error;
}
