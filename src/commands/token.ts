import { existsSync } from "node:fs";
import { join } from "node:path";
import { v7 } from "uuid";
import type { Config } from "../config.ts";
import { findUsers, issueToken } from "../services/found-organization.ts";
import { DATABASE_FILE, openStore } from "../store/sqlite/open.ts";
import { matchingKeys, StartError, usable } from "./serve.ts";

const DAY_MS = 24 * 3600 * 1000;

export interface TokenOptions {
  /** Id or email of the user; may be absent while there is only one. */
  readonly user?: string;
  readonly description: string;
  /** Whole days, 1 to 90. */
  readonly days: number;
  readonly readOnly: boolean;
}

/**
 * Makes a personal access token as the operator. It works beside a running
 * server, which knows the token from the next request on.
 *
 * @returns the token's value, which is stored nowhere
 * @throws StartError when the data folder holds no database, or when no user or more than one fits
 */
export async function createToken(config: Config, options: TokenOptions): Promise<string> {
  // A mistyped folder must not become a new installation.
  if (!existsSync(join(config.dataDir, DATABASE_FILE))) {
    throw new StartError(`there is no database in ${config.dataDir}: start the server once`);
  }
  const store = usable(config, () => openStore({ dataDir: config.dataDir, now: Date.now, newId: v7 }));
  try {
    const keys = await matchingKeys(config, store);
    const users = await findUsers(store.reader);
    const fitting = options.user
      ? users.filter(({ userId, email }) => userId === options.user?.toLowerCase() || email === options.user)
      : users;
    const [user] = fitting;
    if (!user) {
      throw new StartError(
        options.user
          ? `no user has the id or email ${options.user}`
          : "there is no user yet: start the server once",
      );
    }
    if (fitting.length > 1) {
      const choices = fitting.map(
        ({ userId, email, organizationName }) => `  ${userId}  ${email}  ${organizationName}`,
      );
      throw new StartError(`choose a user with --user:\n${choices.join("\n")}`);
    }
    return await issueToken(store, keys, {
      userId: user.userId,
      description: options.description,
      validForMs: options.days * DAY_MS,
      readOnly: options.readOnly,
    });
  } finally {
    await store.close();
  }
}
