import type { EgressPolicy } from "#gen/service/v1/organization_pb.js";
import { phaseUnsuitable, valueUnusable } from "../error.ts";

/** Path of the policy in OrganizationPolicies. */
const EGRESS = "egress";
const IPV6 = /^[0-9a-f:.]*:[0-9a-f:.]*$/i;
const NAME = /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/;
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;

/**
 * Requires that every server knows the policy; servers of the previous release would lose it.
 * @throws DomainError PHASE_UNSUITABLE
 */
export function requireEgressKnown(isKnown: boolean): void {
  if (isKnown) return;
  const message = `${EGRESS} can be set once every server runs this release`;
  throw phaseUnsuitable("installation", "UPGRADING", message);
}

/**
 * Requires that each host of the policy is one that can be reached.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMeaningfulEgress({ hosts }: EgressPolicy): void {
  for (const [index, { host }] of hosts.entries()) {
    if (canonicalEgressHost(host) !== undefined) continue;
    const field = `${EGRESS}.hosts[${index}].host`;
    throw valueUnusable(
      field,
      `${field} must be a name, an address, or *. and a name, without scheme, path and port, not ${JSON.stringify(host)}`,
    );
  }
}

/**
 * Returns the canonical spelling of a host of the policy: a lower-case name, `*.` and a name, or an IP address (IPv6
 * without brackets). Undefined for any other text.
 */
export function canonicalEgressHost(text: string): string | undefined {
  const isBelow = text.startsWith("*.");
  const name = isBelow ? text.slice(2) : text;
  const isIpv6 = IPV6.test(name);
  if (!isIpv6 && /[\s/@?#\\%:[\]]/.test(name)) return undefined;
  const parsed = URL.parse(`http://${isIpv6 ? `[${name}]` : name}/`)?.hostname ?? "";
  if (isIpv6) return parsed === "" || isBelow ? undefined : parsed.slice(1, -1);
  const host = parsed.replace(/\.$/, "");
  if (!NAME.test(host) || (isBelow && IPV4.test(host))) return undefined;
  return isBelow ? `*.${host}` : host;
}
