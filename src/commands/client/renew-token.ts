import { toJson } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { type PersonalAccessToken, PersonalAccessTokenSchema } from "#gen/service/v1/user_pb.js";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { TOKEN_VALID_DEFAULT_MS, TOKEN_VALID_MAX_MS } from "../../domain/identity/personal-token.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { StartError } from "../start-error.ts";
import { table } from "../terminal/table.ts";
import { call, readPages } from "./call.ts";
import { jsonText, printable, timeOf } from "./printable.ts";
import { isServiceAccountToken, REPLACED, type ServerAccess } from "./server-access.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Arguments of `chartroom token renew`. */
export interface TokenRenewal {
  /** Id of the token; undefined for the command's own token. */
  readonly id: string | undefined;
  /** New validity in days from now; undefined for 30, or for 90 when it ends in more than 30. */
  readonly days: number | undefined;
}

/**
 * Renews a personal access token and keeps its value.
 * @throws StartError also when the command's own token cannot be identified
 */
export async function renewToken(
  access: ServerAccess,
  { id, days }: TokenRenewal,
): Promise<PersonalAccessToken> {
  if (isServiceAccountToken(access.token))
    throw new StartError(`the token of a service account is not renewed: ${REPLACED}`);
  const users = createClient(UserService, createHttpTransport(access.server));
  let ownEnd: Date | undefined;
  const noteTokenEnd = (endsAt: Date) => {
    ownEnd = endsAt;
  };
  const tokens = await readPages(Number.POSITIVE_INFINITY, async (pagination) => {
    const page = await call({ ...access, noteTokenEnd }, (options) =>
      users.listPersonalAccessTokens({ pagination }, options),
    );
    return { elements: page.personalAccessTokens, pagination: page.pagination };
  });
  const found = id === undefined ? ownToken(tokens, ownEnd) : namedToken(tokens, id);
  const request = {
    personalAccessTokenId: found.id,
    validFor: durationFromMs(days === undefined ? defaultValidForMs(found) : days * DAY_MS),
  };
  const { server, token } = access;
  const { personalAccessToken } = await call({ server, token }, (options) =>
    users.renewPersonalAccessToken(request, options),
  );
  if (personalAccessToken) return personalAccessToken;
  throw new StartError("the server has answered without the token");
}

/** Returns a sentence with a token's new expiry. */
export function renewalText({ id, expiresAt }: PersonalAccessToken): string {
  return printable(`renewed the token ${id}: it ends at ${timeOf(expiresAt)} UTC\n`);
}

/** Returns a token as a JSON object, a service.v1.PersonalAccessToken. */
export function renewalJson(token: PersonalAccessToken): string {
  return jsonText(toJson(PersonalAccessTokenSchema, token));
}

/**
 * Returns the command's own token. The server announces its expiry in its last 7 days, but never its id.
 * @param endsAt the announced expiry; undefined if there was none
 */
function ownToken(tokens: readonly PersonalAccessToken[], endsAt: Date | undefined): PersonalAccessToken {
  const fitting = endsAt ? tokens.filter((token) => endOf(token) === endsAt.getTime()) : tokens;
  const [own, ...others] = fitting;
  if (own && others.length === 0) return own;
  const rows = fitting.map((token) => [token.id, timeOf(token.expiresAt), token.description]);
  const list = table(["TOKEN", "ENDS (UTC)", "DESCRIPTION"], rows).trimEnd();
  throw new StartError(`say which one of your tokens: chartroom token renew ID\n${list}`);
}

function namedToken(tokens: readonly PersonalAccessToken[], id: string): PersonalAccessToken {
  const named = tokens.find((token) => token.id === id.toLowerCase());
  if (named) return named;
  // Do not repeat the value: it may be the token itself.
  throw new StartError("you have no access token with this id: give its id, not the token itself");
}

/** The server does not renew a token for less time than it has left. */
function defaultValidForMs(token: PersonalAccessToken): number {
  return endOf(token) > Date.now() + TOKEN_VALID_DEFAULT_MS ? TOKEN_VALID_MAX_MS : TOKEN_VALID_DEFAULT_MS;
}

function endOf({ expiresAt }: PersonalAccessToken): number {
  return expiresAt ? timestampMs(expiresAt) : 0;
}
