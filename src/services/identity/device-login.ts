import { create } from "@bufbuild/protobuf";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { notFound, unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { TOKEN_VALID_DEFAULT_MS } from "../../domain/identity/personal-token.ts";
import {
  ATTEMPTS_MS,
  attemptWaitMs,
  DEVICE_LOGIN_VALID_MS,
  type DevicePollProblem,
  displacedLogin,
  MAX_ATTEMPTS,
  machineName,
  POLL_INTERVAL_MS,
  pollOutcome,
  requireMayMakeTokens,
  requireNamedPerson,
  roomForLogin,
  shownCode,
  siteOf,
  slowerInterval,
  tooManyWrongCodes,
  typedCode,
} from "../../domain/identity/sign-in/device-login.ts";
import {
  countDeviceLogins,
  countSignInAttempt,
  decideDeviceLogin,
  findDeviceLogin,
  findSignInAttempts,
  findUndecidedDeviceLogin,
  insertDeviceLogin,
  listUndecidedDeviceLogins,
  removeDeviceLogin,
  type StoredDeviceLogin,
  updateDevicePoll,
} from "../../store/identity/device-login.ts";
import { findMemberAtWork } from "../../store/identity/member.ts";
import { type Reader, SYSTEM, type WriteTransaction } from "../../store/store.ts";
import { revalidate } from "../call/authenticated-caller.ts";
import { createPersonalToken } from "./personal-token.ts";
import { personOf, type SignInDependencies, type SignInPerson } from "./sign-in.ts";

const OPERATION = "sign-in/device";

/** The origin of a request. */
export interface Sender {
  readonly address: string;
  /** The network of the address, for which attempts are counted. */
  readonly network: string;
}

/** A login that has begun. The codes are not stored. */
export interface BegunDeviceLogin {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly validSeconds: number;
  readonly intervalSeconds: number;
}

/** A machine that asks for a token, as the page shows it. */
export interface AskingMachine {
  readonly machine: string;
  readonly address: string;
  /** Milliseconds since 1970 UTC. */
  readonly askedAt: number;
  /** The person that the machine would act as; the user id must be sent with the decision. */
  readonly person: SignInPerson & { readonly userId: string };
}

/** A person's decision about a machine. */
export interface DeviceDecision {
  /** User id of the person that the page showed. */
  readonly userId: string;
  readonly isAllowed: boolean;
}

/** Issues tokens to devices after a person has approved it in a browser (RFC 8628). */
export interface DeviceLogin {
  /** Begins a login. @returns undefined while too many are open */
  begin(machine: string, sender: Sender): Promise<BegunDeviceLogin | undefined>;
  /**
   * Returns the machine that a typed code belongs to, and the person that it would act as.
   * @param caller the signed-in person
   * @throws DomainError UNAUTHENTICATED, NOT_FOUND, TOO_MANY_CALLS or PERMISSION_DENIED
   */
  find(caller: Caller | undefined, code: string, sender: Sender): Promise<AskingMachine>;
  /**
   * Approves or denies a token of the caller for a machine.
   * @throws DomainError as find; PHASE_UNSUITABLE when the caller is not the person that the page showed
   */
  decide(caller: Caller | undefined, code: string, decision: DeviceDecision, sender: Sender): Promise<void>;
  /** Handles a device's poll. Returns the token's value and lifetime; only once. */
  poll(
    deviceCode: string,
  ): Promise<
    { readonly token: string; readonly validSeconds: number } | { readonly problem: DevicePollProblem }
  >;
}

export function createDeviceLogin({ store, keys, now }: SignInDependencies): DeviceLogin {
  /** Looks up a typed code, and counts wrong codes; `act` runs with the login in the same transaction. */
  const withLogin = async <T>(
    present: Caller | undefined,
    text: string,
    { network }: Sender,
    act: (tx: WriteTransaction, caller: Caller, login: StoredDeviceLogin) => Promise<T>,
  ): Promise<T> => {
    if (!present) throw unauthenticated();
    const { organizationId, subject } = present;
    // Checked outside the write: a caller without attempts left must not delay the writes of others.
    await requireAttemptLeft(store.reader, { account: present.accountId, network }, now());
    const macs = keys.tokenMacs(typedCode(text));
    const look = async (tx: WriteTransaction) => {
      const caller = await revalidate(tx.db, present, tx.now);
      requireMayMakeTokens(caller);
      const counts = { account: caller.accountId, network };
      await requireAttemptLeft(tx.db, counts, tx.now);
      const login = await findUndecidedDeviceLogin(tx.db, macs, tx.now);
      if (login) return { done: await act(tx, caller, login) };
      for (const [whose, id] of Object.entries(counts)) {
        await countSignInAttempt(tx, `${whose} ${id}`, tx.now - ATTEMPTS_MS);
      }
      return undefined;
    };
    const found = await store.write({ id: subject.id, principal: Principal.USER }, OPERATION, look, {
      locks: [organizationId, null],
    });
    if (!found) throw notFound("code");
    return found.done;
  };
  return {
    async begin(machine, { address, network }) {
      /** @returns whether there is room, and the login that has to make way for it */
      const findRoom = async (db: Reader, at: number) => {
        const room = roomForLogin(await countDeviceLogins(db, network, siteOf(network), at));
        if (room !== "full") return { isThere: room === "some" };
        const displaced = displacedLogin(await listUndecidedDeviceLogins(db, at), network);
        return { isThere: displaced !== undefined, displaced };
      };
      // Anybody can begin any number of logins. When too many are open, avoid the write, which would delay others.
      if (!(await findRoom(store.reader, now())).isThere) return undefined;
      const { value: deviceCode, hash } = keys.mintToken("device");
      const userCode = keys.mintTypedCode();
      const [user_mac] = keys.tokenMacs(userCode) as readonly [Uint8Array];
      const begin = async (tx: WriteTransaction) => {
        const { isThere, displaced } = await findRoom(tx.db, tx.now);
        if (!isThere) return undefined;
        if (displaced) await removeDeviceLogin(tx, displaced.id);
        await insertDeviceLogin(tx, {
          id: tx.newId(),
          device_hash: hash,
          user_mac,
          machine: machineName(machine),
          address,
          network,
          expires_at: tx.now + DEVICE_LOGIN_VALID_MS,
          interval_ms: POLL_INTERVAL_MS,
        });
        return {
          deviceCode,
          userCode: shownCode(userCode),
          validSeconds: DEVICE_LOGIN_VALID_MS / 1000,
          intervalSeconds: POLL_INTERVAL_MS / 1000,
        };
      };
      return store.write(SYSTEM, OPERATION, begin, { locks: [null] });
    },
    find: (caller, code, sender) =>
      withLogin(caller, code, sender, async (tx, present, { machine, address, created_at }) => ({
        machine,
        address,
        askedAt: created_at,
        person: { ...(await personOf(tx.db, present)), userId: present.subject.id },
      })),
    decide: (caller, code, { userId, isAllowed }, sender) =>
      withLogin(caller, code, sender, async (tx, present, { id }) => {
        requireNamedPerson(present, userId);
        await decideDeviceLogin(tx, present, id, { userId: present.subject.id, isAllowed });
      }),
    async poll(deviceCode) {
      const hash = keys.hashOf(deviceCode);
      const find = (db: Reader) => findDeviceLogin(db, hash);
      const known = await find(store.reader);
      if (!known) return { problem: "invalid_grant" };
      const first = pollOutcome(known, now());
      // Anybody can poll at any rate: once the interval is as long as it gets, an early poll has nothing to write.
      const isSlowest = slowerInterval(known) === known.interval_ms;
      if (first === "expired_token" || (first === "slow_down" && isSlowest)) return { problem: first };
      const answer = async (tx: WriteTransaction) => {
        const login = await find(tx.db);
        if (!login) return { problem: "invalid_grant" } as const;
        const outcome = pollOutcome(login, tx.now);
        if (outcome === "authorization_pending" || outcome === "slow_down") {
          const isEarly = outcome === "slow_down";
          await updateDevicePoll(tx, login.id, isEarly ? slowerInterval(login) : login.interval_ms);
        } else if (outcome === "access_denied") {
          await removeDeviceLogin(tx, login.id);
        } else if (outcome === "allowed") {
          // The login was decided after the author of this record was read. The next poll gets the token.
          if (login.user_id !== known.user_id) return { problem: "authorization_pending" } as const;
          await removeDeviceLogin(tx, login.id);
          const token = await createToken(tx, login);
          if (token === undefined) return { problem: "access_denied" } as const;
          return { token, validSeconds: TOKEN_VALID_DEFAULT_MS / 1000 };
        }
        return { problem: outcome as Exclude<typeof outcome, "allowed"> };
      };
      const actor = known.user_id === null ? SYSTEM : { id: known.user_id, principal: Principal.USER };
      return store.write(actor, OPERATION, answer, {
        locks: async (db) => {
          const organizationId = (await find(db))?.organization_id;
          return organizationId ? [organizationId, null] : [null];
        },
      });
    },
  };

  /** Creates the token of the member who has approved it; undefined if the member may no longer act. */
  async function createToken(
    tx: WriteTransaction,
    { organization_id, user_id, machine }: StoredDeviceLogin,
  ): Promise<string | undefined> {
    const scope = { organizationId: organization_id ?? "" };
    const userId = user_id ?? "";
    const member = await findMemberAtWork(tx.db, scope, userId);
    if (!member || member.blocked_at !== null) return undefined;
    return createPersonalToken(tx, scope, keys, {
      userId,
      description: `chartroom login on ${machine}`,
      validForMs: 0,
      readOnly: false,
      creator: create(SubjectSchema, { id: userId, principal: Principal.USER }),
      creatorAccountId: member.account_id,
    });
  }
}

async function requireAttemptLeft(
  db: Reader,
  counts: Readonly<Record<"account" | "network", string>>,
  now: number,
): Promise<void> {
  for (const whose of ["account", "network"] as const) {
    const counted = await findSignInAttempts(db, `${whose} ${counts[whose]}`);
    const waitMs = attemptWaitMs(counted, MAX_ATTEMPTS[whose], now);
    if (waitMs > 0) throw tooManyWrongCodes(whose, Math.ceil(waitMs / 1000));
  }
}
