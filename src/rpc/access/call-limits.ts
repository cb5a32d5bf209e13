import type { ConnectError } from "@connectrpc/connect";
import type { Caller } from "../../domain/identity/caller.ts";
import { type CallBucket, CallBuckets } from "../../domain/traffic/call-buckets.ts";
import { FairShares } from "../../domain/traffic/fair-shares.ts";
import { type CallScope, tooManyCalls } from "../../domain/traffic/too-many-calls.ts";
import type { Others } from "../../store/listeners.ts";
import { fromDomain } from "../error/error.ts";

/** The limits of a caller, for the headers of an answer. */
export interface LimitState {
  readonly scope: CallScope;
  /** Calls in a minute; absent where there is no fixed number. */
  readonly limit?: number;
  /** Calls that may come at once by now. */
  readonly remaining: number;
  /** Seconds until as many may come at once as at most. */
  readonly resetSeconds: number;
  /** The error of a call that is refused, and after how many seconds it may come again. */
  readonly refusal?: { readonly error: ConnectError; readonly retryAfterSeconds: number };
}

/** The limits of calls of one server. */
export interface CallLimits {
  /** Returns why no request of an address is looked at now; undefined while they are. */
  ofAddress(address: string): LimitState | undefined;
  /** Counts a request of an address that was refused without a known caller. */
  noteRefusal(address: string): void;
  /** Counts a call. @returns what its caller has to know; undefined while less than half of any limit is used */
  admit(caller: Caller): LimitState | undefined;
  /** Tells the other servers what was let through since the last exchange. */
  exchange(): void;
  /** The number of refusals by whose limit it was. */
  readonly refused: ReadonlyMap<CallScope, number>;
}

export interface CallLimitSettings {
  readonly rateLimits: "on" | "off";
  readonly callsPerToken: number;
  readonly callsPerAccount: number;
  readonly callsPerServer: number;
  readonly refusalsPerAddress: number;
}

const MINUTE_SECONDS = 60;

/** How often a server tells the others that it is there, and after which silence it counts as gone. */
const PRESENCE_MS = 10_000;
const GONE_MS = 35_000;

/** The keys of one kind that one message to other servers holds at most: the whole has to fit into it. */
const MAX_SHARED_KEYS = 50;

/** Answers describe a limit of which less than this share is left. */
const LOW_SHARE = 0.5;

/**
 * Creates the limits of calls.
 *
 * @param others the other servers of the database, each of which tells what it has let through
 * @param now milliseconds, never going back
 * @param serverId names this server to the others
 */
export function createCallLimits(
  settings: CallLimitSettings,
  others: Others | undefined,
  now: () => number,
  serverId = "",
): CallLimits {
  const refused = new Map<CallScope, number>();
  if (settings.rateLimits === "off") return noLimits(refused);
  const buckets = {
    token: new CallBuckets(settings.callsPerToken),
    account: new CallBuckets(settings.callsPerAccount),
    address: new CallBuckets(settings.refusalsPerAddress),
  };
  const shares = new FairShares(settings.callsPerServer / MINUTE_SECONDS);
  const seen = new Map<string, number>();
  let toldAt = Number.NEGATIVE_INFINITY;
  const divide = () => {
    for (const [id, at] of seen) if (now() - at > GONE_MS) seen.delete(id);
    for (const scope of SHARED_SCOPES) buckets[scope].divideAmong(seen.size + 1);
  };
  others?.onMessage((text) => {
    const id = PRESENCE.exec(text)?.[1];
    if (id !== undefined && !seen.has(id)) toldAt = Number.NEGATIVE_INFINITY;
    if (id !== undefined) seen.set(id, now());
    for (const [scope, key, calls] of parseShared(text)) buckets[scope].subtractRemote(key, calls, now());
  });
  const refusal = (scope: CallScope, waitMs: number, limit?: number): LimitState => {
    refused.set(scope, (refused.get(scope) ?? 0) + 1);
    const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
    const error = fromDomain(tooManyCalls(scope, retryAfterSeconds));
    const known = limit === undefined ? {} : { limit };
    return {
      scope,
      ...known,
      remaining: 0,
      resetSeconds: retryAfterSeconds,
      refusal: { error, retryAfterSeconds },
    };
  };
  const stateOf = (scope: "token" | "account", { level }: CallBucket): LimitState | undefined => {
    const { burst, limit } = buckets[scope];
    if (level >= burst * LOW_SHARE) return undefined;
    const resetSeconds = Math.ceil(buckets[scope].msToFull(level) / 1000);
    return { scope, limit, remaining: Math.max(0, Math.floor(level)), resetSeconds };
  };
  return {
    refused,
    ofAddress(address) {
      const waitMs = buckets.address.waitOf(networkOf(address), now());
      return waitMs === 0 ? undefined : refusal("address", waitMs, settings.refusalsPerAddress);
    },
    noteRefusal(address) {
      buckets.address.take(networkOf(address), now());
    },
    admit({ tokenId, accountId, subject, organizationId }) {
      const at = now();
      const account = accountId || subject.id;
      const ofToken = buckets.token.bucketOf(tokenId, at);
      const tokenMs = buckets.token.takeFrom(ofToken);
      if (tokenMs > 0) return refusal("token", tokenMs, settings.callsPerToken);
      const ofAccount = buckets.account.bucketOf(account, at);
      const accountMs = buckets.account.takeFrom(ofAccount);
      if (accountMs > 0) return refusal("account", accountMs, settings.callsPerAccount);
      if (!shares.admits(organizationId || account, at)) return refusal("organization", 1000);
      return stateOf("token", ofToken) ?? stateOf("account", ofAccount);
    },
    exchange() {
      if (!others) return;
      const shared = SHARED_SCOPES.flatMap((scope) =>
        buckets[scope].takeUnsharedCalls(MAX_SHARED_KEYS).map(([key, calls]) => `${scope} ${calls} ${key}`),
      );
      divide();
      if (serverId !== "" && now() - toldAt >= PRESENCE_MS) {
        toldAt = now();
        shared.push(`here ${serverId}`);
      }
      if (shared.length > 0) others.tell(shared.join("\n"));
    },
  };
}

/** The line by which a server tells that it is there; servers of the release before leave it out. */
const PRESENCE = /^here (\S{1,64})$/m;

const SHARED_SCOPES = ["token", "account", "address"] as const;

/** Reads what another server has shared; anything else is left out. */
function parseShared(text: string): [scope: (typeof SHARED_SCOPES)[number], key: string, calls: number][] {
  return text.split("\n").flatMap((line) => {
    const [, name, calls, key] = /^(\w+) (\d{1,9}) (\S+)$/.exec(line) ?? [];
    const scope = SHARED_SCOPES.find((each) => each === name);
    return scope === undefined || key === undefined ? [] : [[scope, key, Number(calls)] as const];
  }) as [(typeof SHARED_SCOPES)[number], string, number][];
}

function noLimits(refused: ReadonlyMap<CallScope, number>): CallLimits {
  return { refused, ofAddress: () => undefined, noteRefusal() {}, admit: () => undefined, exchange() {} };
}

/** Groups of an IPv6 address that name a network: who has one address has all of them. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/** Returns the key of an address: of IPv6 its network of 64 bits. */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : GROUPS - front.length - back.length;
  const groups = [...front, ...new Array<string>(Math.max(0, zeros)).fill("0"), ...back];
  return `${groups.slice(0, NETWORK_GROUPS).join(":")}::/64`;
}
