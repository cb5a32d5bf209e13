import { hostname } from "node:os";
import { createInterface } from "node:readline/promises";
import { type Readable, Writable } from "node:stream";
import { createClient } from "@connectrpc/connect";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { IdentityService } from "#gen/service/v1/identity_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { StartError } from "../start-error.ts";
import { call } from "./call.ts";
import { readCredentials, writeCredentials } from "./credentials.ts";
import { askForToken } from "./device-login.ts";

/** Advice for a token that was given to log in with. */
const WHOLE_TOKEN =
  "give one of this server, whole and as it was shown; chartroom token create makes another";

export interface LoginOptions {
  readonly server: string;
  /** Path of the credentials file. */
  readonly file: string;
  /** The input of the token: a terminal, which does not show it, or a pipe. */
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
  /** True to have a person allow a token in a browser; it is read from the input otherwise. */
  readonly isDevice: boolean;
}

/**
 * Gets an access token from a person who allows it in a browser, or reads one, asks the server whose it is, and stores it for later commands.
 * @returns a line that says who has logged in
 * @throws StartError when there is no token, or it does not hold
 */
export async function logIn({ server, file, input, output, isDevice }: LoginOptions): Promise<string> {
  const stored = readCredentials(file);
  const token = isDevice
    ? await askForToken({ server, output, machine: hostname() })
    : (await readToken(input, output, server)).trim();
  if (token === "") throw new StartError("no token was given: chartroom token create makes one");
  if (!/^[!-~]+$/.test(token)) throw new StartError("that is no token: tokens have no blanks in them");
  const identity = createClient(IdentityService, createHttpTransport(server));
  const { subject, organizationId } = await call({ server, token, tokenRemedy: WHOLE_TOKEN }, (options) =>
    identity.getAuthenticatedIdentity({}, options),
  );
  writeCredentials(file, { server, tokens: { ...stored.tokens, [server]: token } });
  const kind = Principal[subject?.principal ?? 0]?.toLowerCase().replace("_", " ");
  return `logged in to ${server} as ${kind} ${subject?.id} of organization ${organizationId}\n`;
}

/** Removes the token of a server from the credentials file. The token stays valid. */
export function logOut({ server, file }: Pick<LoginOptions, "server" | "file">): string {
  const { tokens, server: last } = readCredentials(file);
  if (tokens[server] === undefined) return `there was no login to ${server}\n`;
  const { [server]: _, ...others } = tokens;
  writeCredentials(file, { server: last === server ? "" : last, tokens: others });
  return `logged out of ${server}; the token itself stays valid until it is deleted or expires\n`;
}

async function readToken(input: LoginOptions["input"], output: Writable, server: string): Promise<string> {
  const isTyped = input.isTTY === true;
  // What readline would show again of the typed line is the token.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, ...(isTyped && { output: nowhere, terminal: true }) });
  // After readline has switched the terminal's own echo off.
  if (isTyped) output.write(`Access token for ${server}: `);
  try {
    for await (const line of lines) return line;
    return "";
  } finally {
    lines.close();
    if (isTyped) output.write("\n");
  }
}
