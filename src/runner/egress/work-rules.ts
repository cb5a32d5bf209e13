import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { type EgressPolicySchema, EgressHostSet as HostSet } from "#gen/service/v1/organization_pb.js";
import { canonicalEgressHost } from "../../domain/policy/egress-policy.ts";
import { addressesOf } from "../../domain/source/initializer-address.ts";
import { remoteForms } from "../../domain/source/remote.ts";
import { DEFAULT_PORTS, type EgressRule, type EgressTarget, parseHost } from "./egress-rules.ts";

export type EgressHosts = MessageInitShape<typeof EgressPolicySchema>;

/** The hosts that work may reach if its organization has no policy (contract, OrganizationPolicies.egress). */
export const DEFAULT_EGRESS: EgressHosts = { sets: [HostSet.SOURCES, HostSet.SERVICE, HostSet.REGISTRIES] };

/** The members of the sets for a piece of work. */
export interface EgressSets {
  readonly service: EgressTarget | undefined;
  readonly initializer: EnvironmentInitializer | undefined;
  readonly registries: readonly EgressRule[];
  readonly models: readonly EgressRule[];
}

/** Returns the rules for the hosts that a piece of work may reach. */
export function rulesOf({ sets = [], hosts = [] }: EgressHosts, members: EgressSets): readonly EgressRule[] {
  const { service, initializer, registries, models } = members;
  const rules: Readonly<Record<HostSet, readonly EgressRule[]>> = {
    [HostSet.UNSPECIFIED]: [],
    [HostSet.SERVICE]: service
      ? [{ name: "service", host: service.host, ports: [service.port], isService: true }]
      : [],
    [HostSet.SOURCES]: sourcesOf(initializer),
    [HostSet.REGISTRIES]: registries,
    [HostSet.MODELS]: models,
  };
  const named = hosts.flatMap(({ host: text = "", ports = [] }, index) => {
    const host = canonicalEgressHost(text);
    if (host === undefined) return [];
    return [{ name: `hosts[${index}]`, host, ports: ports.length === 0 ? DEFAULT_PORTS : ports }];
  });
  // A set that this release does not know allows nothing.
  return [...sets.flatMap((set) => rules[set] ?? []), ...named];
}

/** Returns the hosts of the repositories of a piece of work. */
export function sourcesOf(initializer: EnvironmentInitializer | undefined): readonly EgressRule[] {
  return addressesOf(initializer).flatMap(sourceRule);
}

/** The ports of a source by its protocol. Programs may also reach the host of an ssh source over https. */
const SOURCE_PORTS: Readonly<Record<string, readonly number[]>> = {
  "https:": [443],
  "http:": [80],
  "ssh:": [22, 443],
};

function sourceRule(address: string): EgressRule[] {
  const url = URL.parse(remoteForms(address).at(-1) ?? address);
  const parsed = url && parseHost(url.hostname);
  const ports = SOURCE_PORTS[url?.protocol ?? ""];
  if (!url || !parsed || !ports) return [];
  return [{ name: "sources", host: parsed.host, ports: url.port === "" ? ports : [Number(url.port)] }];
}
