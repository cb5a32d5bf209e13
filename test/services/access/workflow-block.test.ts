import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { AccountService as Accounts } from "#gen/service/v1/account_service_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ServiceAccountService as ServiceAccounts } from "#gen/service/v1/service_account_service_pb.js";
import {
  WorkflowExecutionActionPhase as ActionPhase,
  WorkflowExecutionPhase as Phase,
} from "#gen/service/v1/workflow_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { AccountService } from "../../../src/services/access/account-service.ts";
import { removeMembership } from "../../../src/services/access/membership.ts";
import { ServiceAccountService } from "../../../src/services/access/service-account-service.ts";
import { findEnvironment } from "../../../src/store/environment/environment.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import {
  type AtWork,
  action,
  Outcome,
  overRepositories,
  runnerOf,
  type Workflows,
  workflowsOf,
} from "../workflow/running-workflow.ts";

let testStore: TestStore;
let administrator: Caller;
let ann: Caller;
let annas: Workflows;
let runner: AtWork;
beforeEach(async () => {
  testStore = openTestStore();
  const { store, keys } = testStore;
  administrator = await testStore.createOrganization("harbour");
  const { organizationId } = administrator;
  const { accountId, userId } = await insertTestMember(store, keys, {
    organizationId,
    email: "ann@example.org",
  });
  const tokenId = await testStore.issueTokenId(userId);
  ann = { ...userOf({ ...administrator, accountId, tokenId }, userId), role: "member" };
  annas = workflowsOf(testStore, ann);
  runner = await runnerOf(testStore, administrator);
});
afterEach(() => testStore.close());

const accounts = () => operationsOf(Accounts, new AccountService(testStore.deps), administrator);
const block = (reason = "left") => accounts().blockAccount({ accountId: ann.accountId, reason });
/** Reads go on as the administrator, since ann's do not. */
const all = () => workflowsOf(testStore, administrator);

test("blocking an account stops what runs as it at once, and nothing else", async () => {
  const workflowId = await annas.make({ triggers: [overRepositories(3)], action: action(2, 3) });
  const { id } = await annas.start(workflowId);
  const [first, second] = await runner.lease(9);
  const other = await all().start(await all().make());
  const environmentId = (await annas.actions(id))[0]?.status?.environmentId ?? "";
  const receipt = await block();

  // The environments of both actions were to run.
  expect(receipt.environmentsStopped).toBe(2);
  const execution = await all().execution(id);
  expect(execution.status).toMatchObject({
    phase: Phase.STOPPED,
    stoppedActionCount: 3,
    runningActionCount: 0,
  });
  expect(execution.metadata?.finishedAt).toBeDefined();
  const actions = await all().actions(id);
  expect(actions.map(({ status }) => status?.phase)).toEqual(Array(3).fill(ActionPhase.STOPPED));
  const environment = await findEnvironment(testStore.store.reader, administrator, environmentId);
  expect(environment?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  expect((await all().execution(other.id)).status?.phase).toBe(Phase.PENDING);

  // The runner that works on it learns why, and what it says changes nothing any more.
  for (const work of [first, second]) {
    if (!work) throw new Error("no work");
    for (const call of [() => runner.renew(work), () => runner.finish(work, Outcome.DONE)]) {
      await expect(call()).rejects.toMatchObject({ reason: ErrorReason.ACCOUNT_BLOCKED });
    }
  }
  await runner.fallSilent();
  expect((await all().execution(id)).status?.phase).toBe(Phase.STOPPED);
  const left = builderOf(testStore.store.reader)
    .selectFrom("work")
    .select("subject_id")
    .where("kind", "=", 2);
  expect(await left.execute()).toHaveLength(1);
});

test("stops what was being stopped, too", async () => {
  const { id } = await annas.start(await annas.make());
  await runner.lease();
  await annas.cancelWorkflowExecution({ workflowExecutionId: id });
  expect((await annas.execution(id)).status?.phase).toBe(Phase.STOPPING);
  await block();
  expect((await all().execution(id)).status?.phase).toBe(Phase.STOPPED);
});

test("its workflows refuse to start, by whomever, and are named in the audit row of their organization", async () => {
  const workflowId = await annas.make();
  const mine = await all().make();
  await block();
  await expect(all().start(workflowId)).rejects.toMatchObject({
    reason: ErrorReason.EXECUTOR_UNFIT,
    metadata: { executor_id: ann.subject.id },
  });
  await all().start(mine);
  const { audit } = await testStore.history(administrator);
  const row = audit.filter(({ subject_type, reason }) => subject_type === "account" && reason === "left");
  expect(row.map(({ diff }) => JSON.parse(diff).workflowIds)).toEqual([[null, [workflowId]]]);
  await accounts().unblockAccount({ accountId: ann.accountId });
  expect((await all().start(workflowId)).status?.phase).toBe(Phase.PENDING);
});

test("an account without workflows names none", async () => {
  await block();
  const { audit } = await testStore.history(administrator);
  const row = audit.find(({ subject_type, reason }) => subject_type === "account" && reason === "left");
  expect(Object.keys(JSON.parse(row?.diff ?? "{}"))).toEqual(["blockedAt"]);
});

test.each(["a member that leaves", "a service account that is deleted"])(
  "what runs as %s is stopped at once, and its runner asked to stop",
  async (executor) => {
    const serviceAccounts = operationsOf(
      ServiceAccounts,
      new ServiceAccountService(testStore.deps),
      administrator,
    );
    const { serviceAccount } = await serviceAccounts.createServiceAccount({
      name: "robot",
      validUntil: timestampFromMs(testStore.clock.now + DAY_MS),
    });
    const serviceAccountId = serviceAccount?.id ?? "";
    const isMember = executor === "a member that leaves";
    const runsAs = { id: serviceAccountId, principal: "PRINCIPAL_SERVICE_ACCOUNT" };
    const workflows = isMember ? annas : all();
    const workflowId = await workflows.make({
      triggers: [overRepositories(2)],
      ...(!isMember && { executor: runsAs }),
    });
    const { id } = await workflows.start(workflowId);
    const other = await all().start(await all().make());
    const [work] = await runner.lease();
    if (!work) throw new Error("no work");
    if (isMember) {
      await testStore.store.write(SYSTEM, "test", (tx) =>
        removeMembership(tx, administrator, ann.subject.id),
      );
    } else await serviceAccounts.deleteServiceAccount({ serviceAccountId });

    expect((await all().execution(id)).status).toMatchObject({
      phase: Phase.STOPPED,
      stoppedActionCount: 2,
    });
    expect((await all().execution(other.id)).status?.phase).toBe(Phase.PENDING);
    expect((await runner.renew(work)).stop).toBe(true);
    await runner.finish(work, Outcome.STOPPED);
    expect((await all().execution(id)).status).toMatchObject({
      phase: Phase.STOPPED,
      stoppedActionCount: 2,
    });
  },
);
