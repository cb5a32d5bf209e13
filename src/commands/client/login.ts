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
import { TOKEN_CHARACTERS } from "./server-access.ts";

/** Advice about a token entered at login. */
const WHOLE_TOKEN =
  "give one of this server, whole and as it was shown; chartroom token create makes another";

export interface LoginOptions {
  readonly server: string;
  /** Path of the credentials file. */
  readonly file: string;
  /** Where the token is read: a terminal, which does not show it, or a pipe. */
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
  /** True to let a person approve a token in a browser; otherwise it is read from the input. */
  readonly isDevice: boolean;
}

/**
 * Gets an access token that a person approves in a browser, or reads one. Asks the server for its owner and stores it
 * for later commands.
 * @returns a line that says who has logged in
 * @throws StartError when there is no token, or it is invalid
 */
export async function logIn({ server, file, input, output, isDevice }: LoginOptions): Promise<string> {
  const stored = readCredentials(file);
  const token = isDevice
    ? await askForToken({ server, output, machine: hostname() })
    : (await readToken(input, output, server)).trim();
  if (token === "") throw new StartError("no token was given: chartroom token create makes one");
  if (!TOKEN_CHARACTERS.test(token)) throw new StartError("that is no token: tokens have no blanks in them");
  const identity = createClient(IdentityService, createHttpTransport(server));
  const { subject, organizationId } = await call({ server, token, tokenRemedy: WHOLE_TOKEN }, (options) =>
    identity.getAuthenticatedIdentity({}, options),
  );
  writeCredentials(file, { server, tokens: { ...stored.tokens, [server]: token } });
  const kind = Principal[subject?.principal ?? 0]?.toLowerCase().replace("_", " ");
  return `logged in to ${server} as ${kind} ${subject?.id} of organization ${organizationId}\n`;
}

/** Removes a server's token from the credentials file. The token stays valid. */
export function logOut({ server, file }: Pick<LoginOptions, "server" | "file">): string {
  const { tokens, server: last } = readCredentials(file);
  if (tokens[server] === undefined) return `there was no login to ${server}\n`;
  const { [server]: _, ...others } = tokens;
  writeCredentials(file, { server: last === server ? "" : last, tokens: others });
  return `logged out of ${server}; the token itself stays valid until it is deleted or expires\n`;
}

async function readToken(input: LoginOptions["input"], output: Writable, server: string): Promise<string> {
  const isTyped = input.isTTY === true;
  // Readline would print the typed token.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, ...(isTyped && { output: nowhere, terminal: true }) });
  // After readline has switched off the terminal's echo.
  if (isTyped) output.write(`Access token for ${server}: `);
  try {
    for await (const line of lines) return line;
    return "";
  } finally {
    lines.close();
    if (isTyped) output.write("\n");
  }
}
