import type { Config } from "../config.ts";
import { findUsers, issueToken } from "../services/found-organization.ts";
import { openExistingData, StartError } from "./open-data.ts";

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
  const { store, keys } = await openExistingData(config);
  try {
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
