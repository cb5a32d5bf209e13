import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Work, WorkKind, WorkSchema } from "#gen/runner/v1/work_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import type { Policies } from "../../domain/policy/policies.ts";
import { leasePolicies } from "../../domain/policy/runner-policies.ts";
import { isWithheld } from "../../domain/policy/work-secrets.ts";
import { neededPolicies, type PolicySet, policiesWithout } from "../../domain/runner/kept-policies.ts";
import type { Keys } from "../../keys.ts";
import { findGroupIdsOf } from "../../store/identity/group-membership.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findSecurityPolicy } from "../../store/policy/security-policy.ts";
import { type Claimant, findClaimable } from "../../store/runner/claimable-work.ts";
import {
  AGENT_WITH_ENVIRONMENT,
  API_AGENT_WITH_ENVIRONMENT,
  type StoredWork,
} from "../../store/runner/work.ts";
import { claimWork } from "../../store/runner/work-lease.ts";
import { type Scope, StoreUnavailable, type WriteTransaction } from "../../store/store.ts";
import {
  addEnvironmentToken,
  replaceAgentToken,
  replaceEnvironmentToken,
} from "../identity/environment-token.ts";
import { holdWork } from "./held-work.ts";
import { failUnusableWork, type ReportUnusableWork } from "./unusable-work.ts";
import type { FindHandler, WorkAssignment, WorkToLease } from "./work-handler.ts";
import { SecretsOfClaim } from "./work-secrets.ts";

/** Maximum work items tried in one transaction, because other writes wait for it. Some may be rejected. */
const MAX_CANDIDATES_PER_CLAIM = 64;

/** A request for work. */
export interface ClaimRequest {
  readonly claimant: Claimant;
  readonly runnerId: string;
  /** The runner's instance that gets the leases; empty for none. */
  readonly instanceId: string;
  /** Maximum number of leases. */
  readonly maxLeases: number;
  /** Maximum total bytes of the encoded leases; the first may be larger. */
  readonly maxBytes: number;
  readonly leaseMs: number;
  readonly keys: Pick<Keys, "mintToken" | "open">;
  readonly handlerOf: FindHandler;
  readonly onUnusableWork: ReportUnusableWork;
}

/** The result of a claim. */
export interface ClaimResult {
  readonly works: Work[];
  /** True when anything was written: rejected work is also postponed or ended. */
  readonly changed: boolean;
}

/** Rolls back an assignment that does not fit into the response; a later claim gets it. */
class ResponseFull extends Error {}

/** Rolls back an assignment to a runner that does not support the policies that the work needs. */
class PoliciesUnkept extends Error {
  readonly needs: PolicySet;
  constructor(needs: PolicySet) {
    super();
    this.needs = needs;
  }
}

/**
 * Leases the next work items and creates their assignments in the same transaction. Work whose assignment fails is
 * marked as unusable and so does not block other work of its organization. Work that needs policies that the runner
 * does not support is held for other runners.
 *
 * @throws StoreUnavailable when the database fails: the work does not change
 */
export async function claim(tx: WriteTransaction, scope: Scope, request: ClaimRequest): Promise<ClaimResult> {
  const works: Work[] = [];
  let found: StoredWork[] = [];
  let ahead: ReadonlyMap<string, unknown> = new Map();
  let candidates = 0;
  let bytes = 0;
  let policies: Policies | undefined;
  const claimed: Claimed = { secrets: new SecretsOfClaim(tx, scope, request.keys), confirmations: [] };
  for (; candidates < MAX_CANDIDATES_PER_CLAIM && works.length < request.maxLeases; candidates += 1) {
    if (found.length === 0) {
      found = await findClaimable(tx.db, request.claimant, tx.now, request.maxLeases - works.length);
      if (found.length === 0) break;
      [ahead, policies] = await Promise.all([
        readAhead(tx, scope, request, found),
        policies ?? findPolicies(tx.db, scope),
      ]);
    }
    const next = found.shift();
    if (!next || !policies) break;
    const offered = { work: next, policies, ahead: ahead.get(next.id) };
    const { length } = claimed.confirmations;
    try {
      const work = await tx.attempt(async () => {
        const assigned = await assign(tx, scope, request, offered, claimed);
        // A single lease may have any size.
        if (!assigned || request.maxLeases === 1) return assigned;
        bytes += toBinary(WorkSchema, assigned).length;
        if (works.length > 0 && bytes > request.maxBytes) throw new ResponseFull();
        return assigned;
      });
      if (work) works.push(work);
      // Its execution may have advanced, and other work may now be next: search again.
      else found = [];
    } catch (error) {
      // The lease was rolled back.
      claimed.confirmations.length = length;
      if (error instanceof ResponseFull) break;
      // The work is not at fault: it is leased once the database is available again.
      if (error instanceof StoreUnavailable) throw error;
      if (error instanceof PoliciesUnkept) await holdWork(tx, scope, next, error.needs, request);
      else await failUnusableWork(tx, scope, next, error, request);
      found = [];
    }
  }
  await Promise.all(claimed.confirmations);
  return { works, changed: candidates > 0 };
}

/** The state that the leases of one claim share. */
interface Claimed {
  readonly secrets: SecretsOfClaim;
  /** Confirmations of the leases, awaited together: see ClaimedWork. */
  readonly confirmations: Promise<void>[];
}

/** Reads ahead for all works before the first begins. Returns the results by work id. */
async function readAhead(
  tx: WriteTransaction,
  scope: Scope,
  { handlerOf }: ClaimRequest,
  found: readonly StoredWork[],
): Promise<ReadonlyMap<string, unknown>> {
  const byKind = [...Map.groupBy(found, ({ kind }) => kind)];
  const read = byKind.map(async ([kind, works]) => {
    const ahead = (await handlerOf(kind).readAhead?.(tx, scope, works)) ?? [];
    return ahead.map((each, index) => [works[index]?.id ?? "", each] as const);
  });
  return new Map((await Promise.all(read)).flat());
}

/** @returns undefined when the work was postponed or is no longer needed */
async function assign(
  tx: WriteTransaction,
  scope: Scope,
  request: ClaimRequest,
  { work, policies, ahead }: Pick<WorkToLease, "work" | "policies" | "ahead">,
  claimed: Claimed,
): Promise<Work | undefined> {
  const { runnerId, claimant } = request;
  const { apiAgents = false } = claimant;
  const offer = {
    work: resolveKind(claimant, work),
    runnerId,
    attempt: work.attempt + 1,
    policies,
    apiAgents,
    ahead,
  };
  const assignment = await request.handlerOf(offer.work.kind).begin(tx, scope, offer);
  return assignment && createLease(tx, scope, request, offer, assignment, claimed);
}

/**
 * Returns the work as the runner takes it: only the environment when the runner does not take an agent execution with
 * it.
 */
function resolveKind({ agentsWithEnvironment }: Claimant, work: StoredWork): StoredWork {
  const isWithAgent = work.kind === AGENT_WITH_ENVIRONMENT || work.kind === API_AGENT_WITH_ENVIRONMENT;
  const isSeparate = isWithAgent && !agentsWithEnvironment;
  return isSeparate ? { ...work, kind: WorkKind.ENVIRONMENT } : work;
}

async function createLease(
  tx: WriteTransaction,
  scope: Scope,
  { claimant, runnerId, instanceId, leaseMs, keys }: ClaimRequest,
  { work, policies }: WorkToLease,
  { work: content, environment, securityPolicyId, leasedAs, idleSince, ...assignment }: WorkAssignment,
  { secrets, confirmations }: Claimed,
): Promise<Work> {
  const securityPolicy =
    securityPolicyId === "" ? undefined : await findSecurityPolicy(tx.db, scope, securityPolicyId);
  const kept = leasePolicies(
    policies,
    securityPolicy,
    await hasScmTools(tx, scope, policies, content, environment),
  );
  const needs = neededPolicies(kept, environment);
  if (policiesWithout(needs, claimant.keeps) !== 0) throw new PoliciesUnkept(needs);
  const holder = { runnerId, instanceId, leaseMs, leasedAs, idleSince };
  const { leased, confirmed } = await claimWork(tx, work, holder);
  confirmations.push(confirmed);
  const issueToken = (to: Environment) => {
    // Commands that anybody may have written get no credential, not even a token of their environment.
    if (isWithheld(to)) return "";
    if (assignment.isNewEnvironment) return addEnvironmentToken(tx, scope, keys, to);
    if (!assignment.sharesEnvironment) return replaceEnvironmentToken(tx, scope, keys, to);
    const holder = { agentExecutionId: leased.subject_id, accountId: leased.account_id };
    return replaceAgentToken(tx, scope, keys, to, holder);
  };
  return create(WorkSchema, {
    leaseId: leased.id,
    fence: BigInt(leased.fence),
    expiresAt: timestampFromMs(leased.expires_at ?? tx.now),
    attempt: leased.attempt,
    environmentToken: environment ? await issueToken(environment) : "",
    policies: kept,
    work: content,
    secrets: environment
      ? await secrets.handOut({
          runnerId,
          leaseId: leased.id,
          subjectId: leased.subject_id,
          content,
          environment,
        })
      : [],
  });
}

/** Returns whether the subject that the work runs as is in the group that source-control tools are restricted to. */
async function hasScmTools(
  tx: WriteTransaction,
  scope: Scope,
  { effective }: Policies,
  content: WorkAssignment["work"],
  environment: Environment | undefined,
): Promise<boolean> {
  const groupId = effective.agentPolicy?.scmToolsAllowedGroupId ?? "";
  const subject =
    content.case === "agent"
      ? content.value.agentExecution?.metadata?.creator
      : environment?.metadata?.creator;
  if (groupId === "" || !subject) return false;
  return (await findGroupIdsOf(tx.db, scope, subject.id)).includes(groupId);
}
