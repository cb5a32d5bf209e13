import { BlockList, isIP } from "node:net";
import { isPublicAddress } from "../../scm/public-address.ts";
import type { ResolveHost } from "../git/remote-address.ts";
import { Limiter } from "../process/limiter.ts";

/** The destination of a connection: a port, and a name in lower case or an address, IPv6 without brackets. */
export interface EgressTarget {
  readonly host: string;
  readonly port: number;
}

/** Hosts that work may reach. */
export interface EgressRule {
  /** The part of the policy that allows them, such as `registries` or `hosts[2]`. */
  readonly name: string;
  /** A name or an address; `*.example.org` matches every subdomain. */
  readonly host: string;
  readonly ports: readonly number[];
  /** True for the service itself, whose address need not be public. */
  readonly isService?: boolean;
}

/** The ports of a rule without ports. */
export const DEFAULT_PORTS: readonly number[] = [80, 443];

/** Ranges of private addresses that may be reached if a rule allows their name. */
export type PrivateNetworks = readonly {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}[];

/** Why a connection is refused. */
export type EgressRefusal = "not_allowed" | "address_not_public" | "no_address" | "begun_by_fork";

export type EgressDecision =
  | { readonly rule: string; readonly addresses: readonly string[]; readonly refusal?: undefined }
  | { readonly rule: string; readonly refusal: EgressRefusal };

/** Decides whether work may reach a target. Connect only to the addresses of the decision. */
export type DecideEgress = (target: EgressTarget) => Promise<EgressDecision>;

/**
 * Returns a function that decides by rules. It resolves a name only if a rule allows it, and refuses the name if one of
 * its addresses is neither public nor in `privateNetworks`.
 */
export function egressDecider(
  rules: readonly EgressRule[],
  privateNetworks: PrivateNetworks,
  resolve: ResolveHost,
): DecideEgress {
  const named = new BlockList();
  for (const { address, prefix, family } of privateNetworks) named.addSubnet(address, prefix, family);
  const isReachable = (address: string) =>
    isPublicAddress(address) || named.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
  return async (target) => {
    const matching = rules.filter((each) => matches(each, target));
    // The rule for the service takes precedence, since it allows addresses that are not public.
    const rule = matching.find((each) => each.isService) ?? matching[0];
    if (!rule) return { rule: "", refusal: "not_allowed" };
    const { host } = target;
    const addresses = isIP(host) === 0 ? await resolve(host).catch(() => []) : [host];
    if (addresses.length === 0) return { rule: rule.name, refusal: "no_address" };
    if (!rule.isService && !addresses.every(isReachable))
      return { rule: rule.name, refusal: "address_not_public" };
    return { rule: rule.name, addresses };
  };
}

/** Restricts a decision to targets that `rules` match, for work that a pull request from a fork began. */
export function withinRules(rules: readonly EgressRule[], decide: DecideEgress): DecideEgress {
  return async (target) =>
    rules.some((each) => matches(each, target)) ? decide(target) : { rule: "", refusal: "begun_by_fork" };
}

/** Concurrent look-ups of a piece of work. The system runs few for the whole process, and they may take long. */
const MAX_LOOKUPS = 2;
/** Maximum number of names in the queue for look-ups, running ones included; further names get no address. */
const MAX_NAMES = 100;

/**
 * Returns a resolver for a piece of work that leaves capacity for other work. Concurrent requests for the same name
 * share one look-up.
 *
 * @param over aborted when the work is over; cancels queued look-ups
 */
export function resolverForWork(resolve: ResolveHost, over: AbortSignal): ResolveHost {
  const limiter = new Limiter(MAX_LOOKUPS);
  const running = new Map<string, Promise<readonly string[]>>();
  return async (name) => {
    const known = running.get(name);
    if (known) return known;
    if (running.size >= MAX_NAMES) return [];
    const found = limiter.run(() => resolve(name), over).finally(() => running.delete(name));
    running.set(name, found);
    return found;
  };
}

function matches(rule: EgressRule, { host, port }: EgressTarget): boolean {
  if (!rule.ports.includes(port)) return false;
  // An address is not a subdomain.
  if (rule.host.startsWith("*.")) return isIP(host) === 0 && host.endsWith(rule.host.slice(1));
  return rule.host === host;
}

/** A name of at most 253 characters, safe to show to people. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/;

/**
 * Parses a host with an optional port, and normalizes every spelling of a name or an address to the form that rules use.
 * Returns undefined for an invalid host.
 */
export function parseHost(
  text: string,
): { readonly host: string; readonly port: number | undefined } | undefined {
  const [, name, digits] = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]/@?#\\%\s]+)(?::(\d{1,5}))?$/.exec(text) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (name === undefined || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  const parsed = URL.parse(`http://${name}/`)?.hostname ?? "";
  const host = parsed.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return isIP(host) !== 0 || HOST_NAME.test(host) ? { host, port } : undefined;
}

/** Returns the target of a URL, or undefined if its scheme is neither http nor https. */
export function targetOfUrl(text: string): EgressTarget | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  const parsed = parseHost(url.host);
  return parsed && { host: parsed.host, port: parsed.port ?? (url.protocol === "https:" ? 443 : 80) };
}
