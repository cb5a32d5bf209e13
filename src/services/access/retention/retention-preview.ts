import { PreviewOrganizationPoliciesResponse_Outcome as Outcome } from "#gen/service/v1/organization_service_pb.js";
import type { Policies } from "../../../domain/policy/policies.ts";
import type { PolicyEffects } from "../../../domain/policy/policy-effects.ts";
import { type RetainedKind, type Retention, retentionOf } from "../../../domain/policy/retention.ts";
import { findPolicies } from "../../../store/policy/organization-policies.ts";
import type { Scope } from "../../../store/store.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import type { RetentionReaders } from "./past.ts";
import { countRemovable } from "./removable-amounts.ts";

/** Maximum number of rows checked per kind (contract, PreviewRetentionResponse.complete). */
const MAX_EXAMINED = 20_000;

/** The kinds in the order of RetentionPolicy, with the contract's names of their resource types. */
const RESOURCES: readonly (readonly [RetainedKind, resourceType: string])[] = [
  ["executions", "workflow_execution"],
  ["agentExecutions", "agent_execution"],
  ["triggerEntries", "trigger_event"],
  ["events", "event"],
];

/** Returns the retention limits of an organization, and the amounts that retention would remove now. */
export async function previewRetention(
  { store, now, retention: defaults }: Pick<ServiceDependencies, "store" | "now" | "retention">,
  scope: Scope,
) {
  const policy = (await findPolicies(store.reader, scope)).effective.retention;
  const retention = retentionOf(policy, defaults);
  const kinds = [];
  let complete = true;
  for (const [kind, resourceType] of RESOURCES) {
    const { days, count } = retention[kind];
    const query = { keep: { days, count }, now: now(), most: MAX_EXAMINED };
    const { rows, bytes, isAll } = await countRemovable(store, scope, kind, query);
    complete &&= isAll;
    const setByPolicy = policy?.[kind] !== undefined;
    kinds.push({ resourceType, kept: { days, count }, setByPolicy, count: rows, bytes: BigInt(bytes) });
  }
  return { kinds, complete };
}

/** A change of policies whose effect on retention is previewed. */
interface RetentionChange {
  readonly store: RetentionReaders;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
  readonly caller: Scope;
  readonly before: Policies;
  readonly after: Policies;
  readonly effects: PolicyEffects;
}

/**
 * Adds what retention would remove after a change of policies but not before it.
 *
 * @returns whether everything was checked
 */
export async function previewRetentionEffects(
  { store, now, caller, before, after, effects }: RetentionChange,
  defaults: Retention,
): Promise<boolean> {
  const [old, changed] = [before, after].map(({ effective }) =>
    retentionOf(effective.retention, defaults),
  ) as [Retention, Retention];
  let complete = true;
  for (const [kind, resourceType] of RESOURCES) {
    const [besides, keep] = [old[kind], changed[kind]];
    if (besides.days === keep.days && besides.count === keep.count) continue;
    const query = { keep, besides, now, most: MAX_EXAMINED };
    const { rows, bytes, ids, isAll } = await countRemovable(store, caller, kind, query);
    complete &&= isAll;
    const what = { fieldPath: `retention.${kind}`, outcome: Outcome.REMOVED, resourceType };
    if (rows > 0) effects.addRemoval(what, { count: rows, bytes, ids });
  }
  return complete;
}
