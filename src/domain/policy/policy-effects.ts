import { PreviewOrganizationPoliciesResponse_Outcome as Outcome } from "#gen/service/v1/organization_service_pb.js";
import type { Policies } from "./policies.ts";
import { PolicyDenied } from "./policy-decision.ts";

/** A resource that a policy change affects. */
export interface ConcernedResource {
  readonly id: string;
  readonly name: string;
}

/** The effect of one changed field on resources of one kind. */
export interface PolicyEffect {
  readonly fieldPath: string;
  readonly outcome: Outcome;
  readonly operation: string;
  readonly resourceType: string;
  count: number;
  readonly resources: ConcernedResource[];
  readonly allowed: string;
  readonly bytes: bigint;
}

/** Maximum number of resources that an effect names; the others are only counted. */
const MAX_NAMED = 10;

/** Collects the effects of a policy change on existing resources. */
export class PolicyEffects {
  readonly #effects = new Map<string, PolicyEffect>();
  readonly #before: Policies;
  readonly #after: Policies;

  constructor(before: Policies, after: Policies) {
    this.#before = before;
    this.#after = after;
  }

  /** The effects, in the order in which they were found. */
  get all(): PolicyEffect[] {
    return [...this.#effects.values()];
  }

  /**
   * Adds a resource if the changed policies would deny an operation on it that the present ones allow.
   * @param enforce the check of the operation: throws PolicyDenied
   */
  check(
    resource: ConcernedResource,
    what: Pick<PolicyEffect, "operation" | "resourceType">,
    enforce: (policies: Policies) => void,
  ): void {
    const denied = denialOf(this.#after, enforce);
    if (!denied || denialOf(this.#before, enforce)) return;
    const { fieldPath, allowed } = denied.decision;
    this.#add(resource, { ...what, fieldPath, allowed, outcome: Outcome.REFUSED });
  }

  /** Adds a resource that a job would archive or delete. */
  addBackground(
    resource: ConcernedResource,
    what: Pick<PolicyEffect, "fieldPath" | "outcome" | "resourceType">,
  ): void {
    this.#add(resource, { ...what, operation: "", allowed: "" });
  }

  /** Adds what a job would permanently remove: the number of resources, their bytes, and the ids that can be named. */
  addRemoval(
    what: Pick<PolicyEffect, "fieldPath" | "outcome" | "resourceType">,
    {
      count,
      bytes,
      ids,
    }: { readonly count: number; readonly bytes: number; readonly ids: readonly string[] },
  ): void {
    const resources = ids.slice(0, MAX_NAMED).map((id) => ({ id, name: "" }));
    const effect = { ...what, operation: "", allowed: "", count, resources, bytes: BigInt(bytes) };
    this.#effects.set(keyOf(effect), effect);
  }

  #add(resource: ConcernedResource, what: Omit<PolicyEffect, "count" | "resources" | "bytes">): void {
    const key = keyOf(what);
    const effect = this.#effects.get(key) ?? { ...what, count: 0, resources: [], bytes: 0n };
    this.#effects.set(key, effect);
    effect.count += 1;
    if (effect.resources.length < MAX_NAMED) effect.resources.push(resource);
  }
}

const keyOf = (effect: Pick<PolicyEffect, "fieldPath" | "outcome" | "operation" | "resourceType">): string =>
  [effect.fieldPath, effect.outcome, effect.operation, effect.resourceType].join(" ");

function denialOf(policies: Policies, enforce: (policies: Policies) => void): PolicyDenied | undefined {
  try {
    enforce(policies);
    return undefined;
  } catch (error) {
    if (error instanceof PolicyDenied) return error;
    throw error;
  }
}
