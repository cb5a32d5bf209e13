import type { EnvironmentInitializer } from "#gen/service/v1/environment_pb.js";
import { addressesOf } from "../../domain/source/initializer-address.ts";
import { remoteForms } from "../../domain/source/remote.ts";
import type { EgressRule, EgressTarget } from "./egress-rules.ts";
import { parseHost } from "./egress-rules.ts";

/** Hosts that have a name together. */
export type EgressSet = "sources" | "service" | "registries" | "models";

/** The hosts that an organization lets work reach. */
export interface EgressPolicy {
  readonly sets: readonly EgressSet[];
}

export const DEFAULT_EGRESS: EgressPolicy = { sets: ["sources", "service", "registries"] };

/** The members of the sets for a piece of work. */
export interface EgressSets {
  readonly service: EgressTarget | undefined;
  readonly initializer: EnvironmentInitializer | undefined;
  readonly registries: readonly EgressRule[];
  readonly models: readonly EgressRule[];
}

/** Returns what a piece of work may reach. */
export function rulesOf({ sets }: EgressPolicy, members: EgressSets): readonly EgressRule[] {
  const { service, initializer, registries, models } = members;
  const rules: Readonly<Record<EgressSet, readonly EgressRule[]>> = {
    service: service ? [{ name: "service", host: service.host, ports: [service.port], isService: true }] : [],
    sources: addressesOf(initializer).flatMap(sourceRule),
    registries,
    models,
  };
  return sets.flatMap((set) => rules[set]);
}

/** The ports of a source by its transport. That of ssh is asked over https, too, by programs that know its host. */
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
