import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { AgentReviewService as ReviewContract } from "#gen/service/v1/agent_review_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { ServiceAccountService as ServiceAccountContract } from "#gen/service/v1/service_account_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { blockAccount, unblockAccount } from "../../../src/services/access/account-block.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { ServiceAccountService } from "../../../src/services/access/service-account-service.ts";
import { AgentReviewService } from "../../../src/services/agent/review/agent-review-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { withRawData } from "../../harness/raw-data.ts";
import { storageProblems } from "../../harness/stored-bytes.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { addAgent, agentsOf, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  await addAgent(made, caller.organizationId, { isDefault: true });
});
afterEach(() => made.close());

const reviewsOf = (by: Caller) => operationsOf(ReviewContract, new AgentReviewService(made.deps), by);
const draft = async (by: Caller, agentExecutionId: string) =>
  (await reviewsOf(by).createAgentReviewDraft({ agentExecutionId, summary: "Hm" })).draft?.id ?? "";
const stored = async () =>
  (
    await builderOf(made.store.reader).selectFrom("agent_review_draft").select("id").orderBy("id").execute()
  ).map(({ id }) => id);

async function member(email: string, role: "member" | "administrator" = "member"): Promise<Caller> {
  const { organizationId } = caller;
  const { userId, accountId } = await insertTestMember(made.store, made.keys, {
    organizationId,
    email,
    administrator: role === "administrator",
  });
  const tokenId = await made.issueTokenId(userId);
  return { ...userOf({ ...caller, accountId, tokenId }, userId), role };
}

async function serviceAccount(): Promise<Caller> {
  const accounts = operationsOf(ServiceAccountContract, new ServiceAccountService(made.deps), caller);
  const validUntil = { seconds: BigInt((made.clock.now + DAY_MS) / 1000) };
  const { serviceAccount: created } = await accounts.createServiceAccount({ name: "Nightly", validUntil });
  const serviceAccountId = created?.id ?? "";
  const { token } = await accounts.createServiceAccountToken({ serviceAccountId });
  const { id: tokenId } = await builderOf(made.store.reader)
    .selectFrom("token")
    .select("id")
    .where("hash", "=", made.keys.readToken(token)?.hash ?? new Uint8Array())
    .executeTakeFirstOrThrow();
  const subject = { ...caller.subject, id: serviceAccountId, principal: Principal.SERVICE_ACCOUNT };
  return { ...caller, subject, role: "service_account", accountId: "", tokenId };
}

/** Somebody's drafts for its own run, and drafts of others, which stay. */
async function drafts(author: Caller) {
  const agentExecutionId = await runsOn(made, author, runner).start();
  const own = [await draft(author, agentExecutionId), await draft(author, agentExecutionId)];
  // The administrator's for the same run, and another member's.
  const another = await member("another@example.org");
  const others = [
    await draft(caller, agentExecutionId),
    await draft(another, await runsOn(made, another, runner).start()),
  ];
  expect(await stored()).toEqual([...own, ...others].sort());
  return { agentExecutionId, own, others: others.sort() };
}
const problems = () => withRawData(made.dataDir, storageProblems);

test("drafts of a service account go when that is deleted", async () => {
  const account = await serviceAccount();
  const { others } = await drafts(account);
  const accounts = operationsOf(ServiceAccountContract, new ServiceAccountService(made.deps), caller);
  await accounts.deleteServiceAccount({ serviceAccountId: account.subject.id });
  expect([await stored(), await problems()]).toEqual([others, []]);
});

test("drafts of a member go when it is removed, also from the run of somebody who stays", async () => {
  const { organizationId } = caller;
  const leaving = await member("leaving@example.org");
  const { others } = await drafts(leaving);
  const organizations = operationsOf(OrganizationContract, new OrganizationService(made.deps), caller);
  await organizations.removeMember({ organizationId, userId: leaving.subject.id });
  expect([await stored(), await problems()]).toEqual([others, []]);

  // An administrator's for the run of another.
  const administrator = await member("second@example.org", "administrator");
  await draft(administrator, await runsOn(made, caller, runner).start());
  await organizations.removeMember({ organizationId, userId: administrator.subject.id });
  expect([await stored(), await problems()]).toEqual([others, []]);
});

test("drafts of a blocked account stay, for nobody else to read, and are its own again once it is not", async () => {
  const author = await member("blocked@example.org");
  const { agentExecutionId, own, others } = await drafts(author);
  await made.store.write(SYSTEM, "test", (tx) => blockAccount(tx, author.accountId, "left"));
  expect(await stored()).toEqual([...own, ...others].sort());
  const seen = async (by: Caller) =>
    (await reviewsOf(by).listAgentReviewDrafts({ agentExecutionId })).drafts.map(({ id }) => id);
  expect((await seen(caller)).filter((id) => own.includes(id))).toEqual([]);
  const [draftId = ""] = own;
  const send = (by: Caller) =>
    agentsOf(made, by).sendToAgentExecution({
      agentExecutionId,
      input: {
        case: "userInput",
        value: { inputs: [{ input: { case: "review", value: { draftId } } }] },
      },
    });
  // Blocked by then, also where the call had begun before.
  await expect(reviewsOf(author).deleteAgentReviewDraft({ draftId })).rejects.toMatchObject({
    reason: ErrorReason.ACCOUNT_BLOCKED,
  });
  await expect(send(author)).rejects.toMatchObject({ reason: ErrorReason.ACCOUNT_BLOCKED });
  await made.store.write(SYSTEM, "test", (tx) => unblockAccount(tx, author.accountId));
  expect(await seen(author)).toEqual(own);
  await reviewsOf(author).deleteAgentReviewDraft({ draftId });
  expect(await stored()).toEqual([...own.slice(1), ...others].sort());
});
