import type { DataConfig } from "../config/config.ts";
import { databaseAt, databasePassword } from "../config/database-settings.ts";
import { presentDeadline } from "../rpc/deadline.ts";
import type { DatabaseAddress } from "../store/postgres/connection.ts";
import type { Presence } from "../store/postgres/locks.ts";
import type { PostgresStoreOptions } from "../store/postgres/open.ts";
import type { Store } from "../store/store.ts";
import { StartError } from "./start-error.ts";

/** The error of a database in use by servers, or by a command that needs them stopped. */
export class InUse extends StartError {}

/**
 * Opens the PostgreSQL database in the settings. Loads its driver only here, because most installations do not need
 * it.
 * @throws InUse; StartError with a sentence about what is wrong with the database or its address
 */
export async function openDatabase(
  config: DataConfig,
  options: Omit<PostgresStoreOptions, "url" | "password" | "connections"> & { readonly presence?: Presence },
): Promise<Store> {
  const { openPostgresStore } = await import("../store/postgres/open.ts");
  return asDatabaseError(config, () =>
    openPostgresStore({
      ...options,
      ...addressOf(config),
      connections: config.databaseConnections,
      deadline: presentDeadline,
    }),
  );
}

/** Returns whether the database in the settings has tables of Chartroom. @throws StartError as {@link asDatabaseError} */
export async function hasTables(config: DataConfig): Promise<boolean> {
  const store = await import("../store/postgres/open-read-only.ts");
  return asDatabaseError(config, () => store.hasTables(addressOf(config)));
}

/** Returns the address of the database in the settings. @throws StartError when the password cannot be read */
export function addressOf(config: DataConfig): DatabaseAddress {
  try {
    return { url: config.databaseUrl, password: databasePassword(config.databasePasswordFile) };
  } catch (error) {
    throw new StartError((error as Error).message, { cause: error });
  }
}

/**
 * Runs work on the database in the settings.
 * @throws InUse; StartError with a sentence about what is wrong with the database or its address
 */
export async function asDatabaseError<T>(config: DataConfig, work: () => Promise<T>): Promise<T> {
  const { PresenceRefused, storageProblem } = await import("../store/postgres/open.ts");
  try {
    return await work();
  } catch (error) {
    if (error instanceof StartError) throw error;
    if (error instanceof PresenceRefused) throw new InUse(error.message);
    const message = (error as Error).message || String((error as NodeJS.ErrnoException).code);
    const problem = storageProblem(error);
    throw new StartError(
      `${databaseAt(config.databaseUrl)} cannot be used: ${problem ? `${problem} (${message})` : message}`,
      { cause: error },
    );
  }
}

/**
 * Like {@link asDatabaseError}, for work that needs exclusive use of the database.
 * @throws StartError also while servers use it, with the advice to stop them
 */
export async function aloneOnDatabase<T>(config: DataConfig, work: () => Promise<T>): Promise<T> {
  return asDatabaseError(config, work).catch((error) => {
    throw error instanceof InUse ? new StartError(`${error.message}: stop them first`) : error;
  });
}
