import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Work, WorkSchema } from "#gen/runner/v1/work_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { leasePolicies } from "../../domain/policy/runner-policies.ts";
import type { Keys } from "../../keys.ts";
import { findPolicies } from "../../store/policy/organization-policies.ts";
import { findSecurityPolicy } from "../../store/policy/security-policy.ts";
import type { StoredWork } from "../../store/runner/work.ts";
import { type Claimant, claimWork, findClaimable } from "../../store/runner/work-lease.ts";
import { type Scope, StoreUnavailable, type WriteTransaction } from "../../store/store.ts";
import { replaceAgentToken, replaceEnvironmentToken } from "../identity/environment-token.ts";
import type { FindHandler, GivenWork } from "./work-handler.ts";
import { type ReportUnusableWork, setAsideWork } from "./work-set-aside.ts";

/** Work that is looked at in one transaction, which other writes wait for; some of it may be refused. */
const LOOKS_A_CLAIM = 64;

/** Who gets work, and how much of it. */
export interface Claim {
  readonly claimant: Claimant;
  readonly runnerId: string;
  /** Most leases. */
  readonly most: number;
  /** Bytes in binary that they may have together; the first may have more. */
  readonly mostBytes: number;
  readonly leaseMs: number;
  readonly keys: Pick<Keys, "mintToken">;
  readonly handlerOf: FindHandler;
  readonly onUnusableWork: ReportUnusableWork;
}

/** What came of a claim. */
export interface Claimed {
  readonly works: Work[];
  /** Whether anything was written: work that is refused is put off, or ends. */
  readonly changed: boolean;
}

/** Takes an assignment back that the answer has no room for: it begins the next one. */
class AnswerFull extends Error {}

/**
 * Gives out the work whose turn it is, and makes it ready in the same
 * transaction. Work whose assignment cannot be made is set aside, so that it
 * keeps no other work of its organization from being given out.
 *
 * @throws StoreUnavailable when the database fails: all work stays as it is
 */
export async function claim(tx: WriteTransaction, scope: Scope, asked: Claim): Promise<Claimed> {
  const works: Work[] = [];
  let looks = 0;
  let bytes = 0;
  for (; looks < LOOKS_A_CLAIM && works.length < asked.most; looks += 1) {
    const next = await findClaimable(tx.db, asked.claimant, tx.now);
    if (!next) break;
    try {
      const work = await tx.attempt(async () => {
        const assigned = await assign(tx, scope, asked, next);
        // What is asked for alone may have any size.
        if (!assigned || asked.most === 1) return assigned;
        bytes += toBinary(WorkSchema, assigned).length;
        if (works.length > 0 && bytes > asked.mostBytes) throw new AnswerFull();
        return assigned;
      });
      if (work) works.push(work);
    } catch (error) {
      if (error instanceof AnswerFull) break;
      // Says nothing of the work: it is given out once the database takes it.
      if (error instanceof StoreUnavailable) throw error;
      await setAsideWork(tx, scope, next, error, asked);
    }
  }
  return { works, changed: looks > 0 };
}

/** @returns undefined for work that is put off or wanted no more */
async function assign(
  tx: WriteTransaction,
  scope: Scope,
  asked: Claim,
  work: StoredWork,
): Promise<Work | undefined> {
  const { runnerId } = asked;
  const offered = { work, runnerId, attempt: work.attempt + 1 };
  const given = await asked.handlerOf(work.kind).begin(tx, scope, offered);
  return given && lease(tx, scope, asked, work, given);
}

async function lease(
  tx: WriteTransaction,
  scope: Scope,
  { runnerId, leaseMs, keys }: Claim,
  work: StoredWork,
  { work: content, environment, securityPolicyId, sharesEnvironment = false }: GivenWork,
): Promise<Work> {
  const leased = await claimWork(tx, work, { runnerId, leaseMs });
  const issueToken = (to: Environment) =>
    sharesEnvironment
      ? replaceAgentToken(tx, scope, keys, to, {
          agentExecutionId: work.subject_id,
          accountId: work.account_id,
        })
      : replaceEnvironmentToken(tx, scope, keys, to);
  const securityPolicy =
    securityPolicyId === "" ? undefined : await findSecurityPolicy(tx.db, scope, securityPolicyId);
  return create(WorkSchema, {
    leaseId: leased.id,
    fence: BigInt(leased.fence),
    expiresAt: timestampFromMs(leased.expires_at ?? tx.now),
    attempt: leased.attempt,
    environmentToken: environment ? await issueToken(environment) : "",
    policies: leasePolicies(await findPolicies(tx.db, scope), securityPolicy),
    work: content,
  });
}
