import { RUNNER_SETTINGS, TOKEN_VARIABLE } from "../../config/config.ts";
import { serverUrl } from "../../config/setting-values.ts";
import { type Environment, type FlagsOf, readSettings, setting } from "../../config/settings.ts";
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
}

/** Returns the server that flags, the environment or the last login name. @throws ConfigError; StartError */
export function serverOf(flags: ClientFlags, env: Environment): string {
  const { server } = readSettings(CLIENT_SETTINGS, flags, env);
  return server || readCredentials(credentialsFile(env)).server || RUNNER_SETTINGS.server.default;
}

/**
 * Returns the server, with the access token from the environment or else from the login.
 * @throws ConfigError; StartError when there is no token
 */
export function accessOf(flags: ClientFlags, env: Environment): ServerAccess {
  const server = serverOf(flags, env);
  const token = env[TOKEN_VARIABLE]?.trim() || readCredentials(credentialsFile(env)).tokens[server];
  if (token) return { server, token };
  throw new StartError(
    `there is no token for ${server}: chartroom login --server ${server}, or put one into ${TOKEN_VARIABLE}`,
    { exitCode: ExitCode.unauthenticated },
  );
}
