import { RUNNER_SETTINGS, TOKEN_VARIABLE } from "../../config/config.ts";
import { serverUrl } from "../../config/setting-values.ts";
import { type Environment, type FlagsOf, readSettings, setting } from "../../config/settings.ts";
import { TOKEN_PREFIXES } from "../../keys.ts";
import type { Terminal } from "../definitions/command-line.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { credentialsFile, readCredentials } from "./credentials.ts";

/** The setting of commands that call a server. */
export const CLIENT_SETTINGS = {
  server: setting({
    ...RUNNER_SETTINGS.server,
    default: "",
    help: `URL of the server; by default that of the last login, or ${RUNNER_SETTINGS.server.default}`,
    read: (text) => (text === "" ? "" : serverUrl(text)),
  }),
} as const;

export type ClientFlags = FlagsOf<typeof CLIENT_SETTINGS>;

/** A server and an access token for it. */
export interface ServerAccess {
  readonly server: string;
  readonly token: string;
  /** The advice about an invalid token; when absent, the advice is to log in. */
  readonly tokenRemedy?: string;
  /** Receives the token's expiry from each response in its last 7 days; absent when nobody is warned. */
  readonly noteTokenEnd?: (endsAt: Date) => void;
}

/** Returns the server from the flags, the environment or the last login. @throws ConfigError; StartError */
export function serverOf(flags: ClientFlags, env: Environment): string {
  const { server } = readSettings(CLIENT_SETTINGS, flags, env);
  return server || readCredentials(credentialsFile(env)).server || RUNNER_SETTINGS.server.default;
}

/**
 * Returns the server and an access token, from the environment or else from the login. Warns on standard error when
 * the token expires soon.
 * @throws ConfigError; StartError when there is no token, or something else in its place
 */
export function accessOf(
  flags: ClientFlags,
  { env, printError }: Pick<Terminal, "env" | "printError">,
): ServerAccess {
  const server = serverOf(flags, env);
  const given = env[TOKEN_VARIABLE]?.trim();
  const token = given || readCredentials(credentialsFile(env)).tokens[server];
  if (token) {
    requireTokenCharacters(token, given ? `the value of ${TOKEN_VARIABLE}` : "the stored token");
    const warn = (warning: string) => printError(`chartroom: ${warning}\n`);
    const noteTokenEnd = warnOnce({ server, token }, warn);
    return { server, token, noteTokenEnd, ...(given && { tokenRemedy: FROM_VARIABLE }) };
  }
  throw new StartError(
    `there is no token for ${server}: chartroom login --server ${server}, or put one into ${TOKEN_VARIABLE}`,
    { exitCode: ExitCode.unauthenticated },
  );
}

/** Matches a text that can be sent as a token. */
export const TOKEN_CHARACTERS = /^[!-~]+$/;

/**
 * Requires that a token can be sent. The error of sending another one would show it.
 *
 * @param what the text that should be a token
 * @throws StartError
 */
function requireTokenCharacters(token: string, what: string): void {
  if (TOKEN_CHARACTERS.test(token)) return;
  throw new StartError(`${what} is no token: tokens have no blanks in them, and only ASCII characters`, {
    exitCode: ExitCode.unauthenticated,
  });
}

/** Advice about a token from the environment variable, which takes precedence over a login. */
const FROM_VARIABLE = `put another one into ${TOKEN_VARIABLE}, or unset it and chartroom login`;

/** Advice about the token of a service account, which cannot be renewed. */
export const REPLACED = "ServiceAccountService/CreateServiceAccountToken makes another one";

/** Returns a function that warns once about a token's expiry and says what renews it. */
export function warnOnce(
  { server, token }: Pick<ServerAccess, "server" | "token">,
  warn: (warning: string) => void,
): (endsAt: Date) => void {
  let isWarned = false;
  return (endsAt) => {
    if (isWarned) return;
    isWarned = true;
    const remedy = isServiceAccountToken(token) ? REPLACED : `chartroom token renew --server ${server}`;
    warn(`the token ends at ${endsAt.toISOString()}: ${remedy}`);
  };
}

/** Returns whether a token belongs to a service account: it can be replaced but not renewed. */
export function isServiceAccountToken(token: string): boolean {
  return token.startsWith(TOKEN_PREFIXES.service_account);
}
