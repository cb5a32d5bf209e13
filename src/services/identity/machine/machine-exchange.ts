import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import {
  ExchangeRefused,
  ISSUER_SKEW_SECONDS,
  MAX_MACHINE_TOKENS,
  type MachineClaims,
  machineTokenEnd,
} from "../../../domain/identity/machine/machine-token.ts";
import { fitsConditions } from "../../../domain/identity/machine/service-account-trust.ts";
import type { Keys } from "../../../keys.ts";
import { findServiceAccount } from "../../../store/identity/service-account.ts";
import {
  findTrustsOf,
  insertMachineTokenUse,
  isCreatorHeld,
  type StoredTrust,
  serviceAccountTrustOfRow,
} from "../../../store/identity/service-account-trust.ts";
import { findTokens, insertToken } from "../../../store/identity/token.ts";
import type { Reader, WriteTransaction } from "../../../store/store.ts";
import type { SignInDependencies } from "../sign-in.ts";

export { ExchangeRefused, type MachineClaims } from "../../../domain/identity/machine/machine-token.ts";

/** Exchanges tokens of external issuers for tokens of service accounts that trust those issuers. */
export interface MachineExchange {
  /**
   * Exchanges an issuer's token for one of a service account. An issuer's token with an id is accepted only once.
   * @returns the value, which is not stored, and its lifetime in seconds
   * @throws ExchangeRefused
   */
  exchange(
    claims: MachineClaims,
    serviceAccountId: string,
  ): Promise<{ readonly token: string; readonly validSeconds: number }>;
}

export function createMachineExchange({ store, keys }: Omit<SignInDependencies, "now">): MachineExchange {
  return {
    async exchange(claims, serviceAccountId) {
      const fittingTrusts = async (db: Reader) =>
        (await findTrustsOf(db, serviceAccountId)).filter((row) => fitsTrust(row, claims));
      if ((await fittingTrusts(store.reader)).length === 0) throw noTrust();
      const exchange = async (tx: WriteTransaction) => {
        for (const trust of await fittingTrusts(tx.db)) {
          const given = await giveToken(tx, keys, trust, claims);
          if (given) return given;
        }
        throw noTrust();
      };
      const actor = create(SubjectSchema, { id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT });
      return store.write(actor, "sign-in/machine", exchange, {
        // The record of exchanged tokens belongs to no organization: one token could be used for several organizations.
        locks: async (db) => [null, ...new Set((await fittingTrusts(db)).map((row) => row.organization_id))],
      });
    },
  };
}

function fitsTrust(row: StoredTrust, { issuer, audiences, all }: MachineClaims): boolean {
  const trust = serviceAccountTrustOfRow(row);
  return trust.issuer === issuer && audiences.includes(trust.audience) && fitsConditions(trust, all);
}

/** Creates a token based on a trust; undefined if the trust's creator or the service account may not act. */
async function giveToken(tx: WriteTransaction, keys: Keys, trust: StoredTrust, claims: MachineClaims) {
  const scope = { organizationId: trust.organization_id };
  const { creator_account_id } = trust;
  if (creator_account_id !== null && (await isCreatorHeld(tx.db, scope, creator_account_id)))
    return undefined;
  const account = await findServiceAccount(tx.db, scope, trust.service_account_id);
  if (!account || account.suspended === 1 || account.valid_until <= tx.now) return undefined;
  const others = await findTokens(tx.db, scope, "machine", account.id);
  if (others.filter(({ expires_at }) => expires_at > tx.now).length >= MAX_MACHINE_TOKENS) {
    const message = `the service account has ${MAX_MACHINE_TOKENS} such tokens, which have to end first`;
    throw new ExchangeRefused("temporarily_unavailable", message);
  }
  if (claims.tokenId !== undefined) await requireFirstUse(tx, keys, claims, claims.tokenId);
  const { value, hash } = keys.mintToken("machine");
  const endsAt = machineTokenEnd(claims, account.valid_until, tx.now);
  await insertToken(tx, scope, {
    id: tx.newId(),
    organization_id: scope.organizationId,
    kind: "machine",
    subject_id: account.id,
    hash,
    hmac_key_id: null,
    read_only: 0,
    expires_at: endsAt,
    last_used_at: null,
    creator_account_id,
    disabled_at: null,
    parent_id: trust.id,
    body: JSON.stringify({
      serviceAccountId: account.id,
      serviceAccountTrustId: trust.id,
      issuer: claims.issuer,
      issuerSubject: claims.subject.slice(0, MAX_SUBJECT_CHARACTERS),
      expiresAt: new Date(endsAt).toISOString(),
    }),
  });
  return { token: value, validSeconds: Math.floor((endsAt - tx.now) / 1000) };
}

/** Maximum number of characters of the subject that are recorded. */
const MAX_SUBJECT_CHARACTERS = 500;

async function requireFirstUse(tx: WriteTransaction, keys: Keys, claims: MachineClaims, tokenId: string) {
  const hash = keys.hashOf(JSON.stringify([claims.issuer, tokenId]));
  if (await insertMachineTokenUse(tx, hash, claims.expiresAt + ISSUER_SKEW_SECONDS * 1000)) return;
  throw new ExchangeRefused("invalid_grant", "the token was exchanged before: each is of use once");
}

/** Returns the error for claims that match no trust. It is the same when there is no such service account. */
function noTrust(): ExchangeRefused {
  const message = "no trust of the service account fits the issuer, the audience and the claims of the token";
  return new ExchangeRefused("invalid_grant", message);
}
