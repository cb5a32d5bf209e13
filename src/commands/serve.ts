import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { v7 } from "uuid";
import { type Config, ConfigError, keyFileOf } from "../config.ts";
import { type Keys, loadKeys } from "../keys.ts";
import { createLog } from "../log.ts";
import { build } from "../server.ts";
import { foundOrganization } from "../services/found-organization.ts";
import { findFact, insertFact } from "../store/fact.ts";
import { hasOrganization } from "../store/organization.ts";
import { lockFolder } from "../store/sqlite/lock.ts";
import { openStore } from "../store/sqlite/open.ts";
import { OPERATOR, type Store } from "../store/store.ts";

/** A server that runs, until it is told to stop. */
export interface Running {
  stop(): Promise<void>;
}

/** A problem of the surroundings that the person at the terminal can mend. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/**
 * Starts the server and tells where it is; on the first start it makes an
 * organization with its administrator and shows one access token.
 *
 * @param print takes text for the person at the terminal, the token included
 * @throws ConfigError or StartError when it cannot start
 */
export async function serve(config: Config, print: (text: string) => void): Promise<Running> {
  checkTls(config);
  const lock = usable(config, () => lockFolder(config.dataDir));
  if (!lock) throw new StartError(`another server already uses the data folder ${config.dataDir}`);
  const log = createLog(config.logLevel);
  const store = usable(config, () => openStore({ dataDir: config.dataDir, now: Date.now, newId: v7 }));
  const stopStore = async () => {
    await store.close();
    lock.release();
  };
  try {
    const keys = await matchingKeys(config, store);
    const server = build(config, { store, keys, log, now: Date.now });
    const address = await server.listen().catch((error) => {
      throw listenProblem(config, error);
    });
    const url = config.baseUrl || localUrl(config, address);
    log.info({ url, dataDir: config.dataDir }, "listening");
    print(`Chartroom is ready at ${url}\n`);
    if (!(await hasOrganization(store.reader))) print(welcome(url, await firstToken(store, keys)));
    return {
      async stop() {
        log.info({}, "stopping");
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

/** The keys of the file, refused when the database was written under others. */
export async function matchingKeys(config: Config, store: Store): Promise<Keys> {
  const keys = readKeys(config);
  const known = await findFact(store.reader, "key_id");
  if (known === undefined) {
    await store.write(OPERATOR, "chartroom serve", (tx) => insertFact(tx, "key_id", keys.id));
  } else if (known !== keys.id) {
    throw new StartError(
      `the key file ${keyFileOf(config)} is not the one that the data in ${config.dataDir} was written with`,
    );
  }
  return keys;
}

/**
 * Opens something in the data folder.
 *
 * @throws StartError when the folder or a file in it cannot be used
 */
export function usable<T>({ dataDir }: Pick<Config, "dataDir">, open: () => T): T {
  try {
    return open();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Without a code of the system or the database it is a fault, and shows where.
    if (typeof code !== "string") throw error;
    throw new StartError(`the data folder ${dataDir} cannot be used: ${message}`, { cause: error });
  }
}

function readKeys(config: Config): Keys {
  try {
    return loadKeys(keyFileOf(config));
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
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

function localUrl(config: Config, { host, port }: { host: string; port: number }): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return `${config.tlsCert ? "https" : "http"}://${name}:${port}`;
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
