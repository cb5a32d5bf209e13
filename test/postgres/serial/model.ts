/** Which of the two organizations of a round. */
export type Place = 0 | 1;

/**
 * What a client of the test does. The first administrator, who stays one, does what names nobody: blocks, limits,
 * roles and removals. Ann makes environments, and sets limits while she is an administrator; Carl starts workflows.
 */
export type Operation =
  | { readonly kind: "block" | "unblock"; readonly place: Place; readonly person: Person }
  | { readonly kind: "remove"; readonly place: Place; readonly person: Person }
  | { readonly kind: "role"; readonly place: Place; readonly administrator: boolean }
  | { readonly kind: "limit" | "limit-by-ann"; readonly place: Place; readonly limit: number }
  | { readonly kind: "read-limit" | "create" | "count" | "start" | "lease"; readonly place: Place };

export type Person = "ann" | "carl";

/** What one organization stores, as far as the operations tell. */
interface Organization {
  /** Maximum number of environments of each user; 0 for any number. */
  limit: number;
  /** Undefined for one that was removed. */
  roles: Record<Person, "administrator" | "member" | undefined>;
  environments: Record<Person, number>;
  /** The executions of Carl whose action waits for a runner. */
  queued: string[];
  /** Those that a lease has put off, since Carl had all the environments that the limit allows. */
  postponed: string[];
}

export interface State {
  blocked: Record<Person, boolean>;
  organizations: [Organization, Organization];
}

/** Returns what the organizations of a new round store. */
export function firstState(): State {
  const organization = (): Organization => ({
    limit: 0,
    roles: { ann: "member", carl: "member" },
    environments: { ann: 0, carl: 0 },
    queued: [],
    postponed: [],
  });
  return { blocked: { ann: false, carl: false }, organizations: [organization(), organization()] };
}

/** Time after which a postponed action may be leased again, in milliseconds; a little less than the server's. */
const POSTPONED_MS = 4_500;

/**
 * Returns the state after an operation, as one alone would have left it.
 * @param answer "done", the reason of an error, or what the operation yields, such as the id of an execution
 * @param atMs how long after the begin of the round it was answered
 * @returns undefined when it would not have been answered like this
 */
export function step(before: State, operation: Operation, answer: string, atMs: number): State | undefined {
  const state = structuredClone(before);
  const organization = state.organizations[operation.place];
  const allow = (expected: string): State | undefined => (answer === expected ? state : undefined);
  /** Returns what is answered to a person who may not call at all. */
  const refusal = (person: Person): string | undefined => {
    if (organization.roles[person] === undefined) return "UNAUTHENTICATED";
    return state.blocked[person] ? "ACCOUNT_BLOCKED" : undefined;
  };
  switch (operation.kind) {
    case "block":
    case "unblock": {
      const { person, kind } = operation;
      if (organization.roles[person] === undefined) return allow("NOT_FOUND");
      if (kind === "block" && person === "carl" && !state.blocked.carl)
        for (const each of state.organizations) stopExecutions(each);
      state.blocked[person] = kind === "block";
      return allow("done");
    }
    case "remove": {
      const { person } = operation;
      if (organization.roles[person] === undefined) return allow("NOT_FOUND");
      organization.roles[person] = undefined;
      if (person === "carl") stopExecutions(organization);
      return allow("done");
    }
    case "role":
      if (organization.roles.ann === undefined) return allow("NOT_FOUND");
      organization.roles.ann = operation.administrator ? "administrator" : "member";
      return allow("done");
    case "limit-by-ann": {
      const refused =
        refusal("ann") ?? (organization.roles.ann === "member" ? "PERMISSION_DENIED" : undefined);
      if (refused) return allow(refused);
      organization.limit = operation.limit;
      return allow("done");
    }
    case "limit":
      organization.limit = operation.limit;
      return allow("done");
    case "read-limit":
      return allow(String(organization.limit));
    case "create": {
      const refused = refusal("ann") ?? (isFull(organization, "ann") ? "POLICY_DENIED" : undefined);
      if (refused) return allow(refused);
      organization.environments.ann += 1;
      return allow("done");
    }
    case "count":
      return allow(String(organization.environments.ann));
    case "start": {
      const refused = refusal("carl");
      if (refused) return allow(refused);
      organization.queued.push(answer);
      return /^[A-Z_]+$/.test(answer) ? undefined : state;
    }
    case "lease":
      return lease(organization, answer, atMs) ? state : undefined;
  }
}

const isFull = ({ limit, environments }: Organization, person: Person) =>
  limit > 0 && environments[person] >= limit;

function stopExecutions(organization: Organization): void {
  organization.queued = [];
  organization.postponed = [];
}

/** Leases one action, or none. @returns whether that could be the answer */
function lease(organization: Organization, answer: string, atMs: number): boolean {
  const due = atMs > POSTPONED_MS ? organization.postponed : [];
  if (answer === "nothing") {
    if (organization.queued.length === 0) return true;
    if (!isFull(organization, "carl")) return false;
    organization.postponed.push(...organization.queued.splice(0));
    return true;
  }
  if (isFull(organization, "carl")) return false;
  for (const list of [organization.queued, due]) {
    const index = list.indexOf(answer);
    if (index === -1) continue;
    list.splice(index, 1);
    // The environment that the action gets.
    organization.environments.carl += 1;
    return true;
  }
  return false;
}
