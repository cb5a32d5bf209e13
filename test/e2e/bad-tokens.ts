import { randomBytes } from "node:crypto";
import { openData } from "../../src/commands/open-data.ts";
import { keysFrom } from "../../src/keys.ts";
import { insertToken } from "../../src/store/identity/token.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { type Answer, post } from "../harness/call.ts";
import { dataConfigOf } from "../harness/data-config.ts";
import type { ReachableServer } from "../harness/server.ts";

/** Authorization headers that open nothing, by what is wrong with them; undefined sends none. */
export async function badAuthorizations(
  server: ReachableServer,
): Promise<Readonly<Record<string, string | undefined>>> {
  const revoked = await revokedToken(server);
  const { exchangeToken } = await called(server, "RunnerService/CreateRunner", { name: "In the attic" });
  await called({ ...server, token: exchangeToken }, "WorkService/Register", {});
  return {
    "no token": undefined,
    "an empty token": "Bearer ",
    "another scheme": `Basic ${Buffer.from("admin:admin").toString("base64")}`,
    garbage: "Bearer let-me-in",
    "a token of another product": `Bearer ${server.token.replace("cr_pat_", "xy_pat_")}`,
    "a token with a typo": `Bearer ${withTypo(server.token)}`,
    "two tokens": `Bearer ${server.token} ${server.token}`,
    "a well-formed token that was never issued": `Bearer ${keysFrom(randomBytes(32)).mintToken("personal").value}`,
    "an exchange token that was used": `Bearer ${exchangeToken}`,
    "a revoked token": `Bearer ${revoked}`,
    "a disabled token": `Bearer ${await storedToken(server, { expiresInMs: 60_000, isDisabled: true })}`,
    "a disabled token that has expired": `Bearer ${await storedToken(server, { expiresInMs: -1, isDisabled: true })}`,
  };
}

/** A token whose checksum does not fit: one character of its random part is another. */
function withTypo(token: string): string {
  const at = "cr_pat_".length + 3;
  return token.slice(0, at) + (token[at] === "a" ? "b" : "a") + token.slice(at + 1);
}

async function revokedToken(server: ReachableServer): Promise<string> {
  const { token } = await called(server, "UserService/CreatePersonalAccessToken", { description: "revoked" });
  const { personalAccessTokens } = await called(server, "UserService/ListPersonalAccessTokens", {});
  const { id } = personalAccessTokens.at(-1);
  // It opened the server a moment ago; nothing may remember that.
  await called({ ...server, token }, "IdentityService/GetAuthenticatedIdentity", {});
  await called(server, "UserService/DeletePersonalAccessToken", { personalAccessTokenId: id });
  return token;
}

/** Returns a token with which nothing is wrong but its end, which was a moment ago. */
export function expiredToken(server: ReachableServer): Promise<string> {
  return storedToken(server, { expiresInMs: -1, isDisabled: false });
}

/** No operation makes such tokens: the row is written into the database, as time or a block would leave it. */
async function storedToken(
  server: ReachableServer,
  { expiresInMs, isDisabled }: { readonly expiresInMs: number; readonly isDisabled: boolean },
): Promise<string> {
  const { subject, organizationId } = await called(server, "IdentityService/GetAuthenticatedIdentity", {});
  const { dataDir } = server;
  const { store, keys } = await openData(dataConfigOf(dataDir));
  const { value, hash } = keys.mintToken("personal");
  try {
    await store.write(OPERATOR, "test", (tx) => {
      const id = tx.newId();
      return insertToken(
        tx,
        { organizationId },
        {
          id,
          organization_id: organizationId,
          kind: "personal",
          subject_id: subject.id,
          hash,
          hmac_key_id: null,
          read_only: 0,
          expires_at: tx.now + expiresInMs,
          last_used_at: null,
          creator_account_id: null,
          disabled_at: isDisabled ? tx.now : null,
          body: JSON.stringify({ id }),
        },
      );
    });
  } finally {
    await store.close();
  }
  return value;
}

async function called(
  server: Pick<ReachableServer, "url" | "token">,
  operation: string,
  body: unknown,
): Promise<Answer["body"]> {
  const answer = await post(server, operation, body);
  if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}
