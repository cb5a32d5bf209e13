import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  EnvironmentWorkService as EnvironmentWorkContract,
  type ReportEnvironmentChangesRequestSchema,
} from "#gen/runner/v1/environment_work_service_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { DiffBase, EnvironmentFileDiff_Kind as Kind } from "#gen/service/v1/environment_changes_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { GroupService as GroupContract } from "#gen/service/v1/group_service_pb.js";
import { ConversationSharingPolicy as Sharing } from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { GroupService } from "../../../src/services/access/group/group-service.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { runsInEnvironment } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { hideAgentExecutions } from "../../../src/store/access/retention/removal.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM, within } from "../../../src/store/store.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { addAgent, type Runs, runsOn } from "../agent/agents.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

type Report = MessageInitShape<typeof ReportEnvironmentChangesRequestSchema>;

let made: TestStore;
let caller: Caller;
let member: Caller;
let stranger: Caller;
let runner: RegisteredRunner;
let runs: Runs;

beforeAll(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  stranger = await made.createOrganization("island");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, null, { isDefault: true });
  const { organizationId } = caller;
  const second = await insertTestMember(made.store, made.keys, {
    organizationId,
    email: "second@example.org",
  });
  const tokenId = await made.issueTokenId(second.userId);
  member = { ...userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId), role: "member" };
});
afterAll(() => made.close());

const reportAs = (by: Caller, report: Report) => {
  const service = new EnvironmentWorkService({ ...workDependencies(made), runs: runsInEnvironment });
  return operationsOf(EnvironmentWorkContract, service, by).reportEnvironmentChanges(report);
};
const files = (...paths: string[]) =>
  paths.map((path) => ({ path, kind: Kind.ADDED, addedLines: 1n, patch: "@@ -0,0 +1 @@\n+a\n" }));
const reportOf = (environmentId: string, ...paths: string[]): Report => ({
  environmentId,
  repositories: [
    {
      folder: "ship",
      branch: "fix",
      commitsAhead: 2,
      counts: { addedFiles: paths.length, addedLines: BigInt(paths.length) },
    },
  ],
  diffs: [
    { base: DiffBase.ENVIRONMENT, files: files(...paths), filesLeftOut: 3 },
    { base: DiffBase.LAST_TURN, files: files(...paths.slice(-1)) },
  ],
});

/** A run that is going on, and its environment. */
async function runAtWork() {
  const { id, given } = await runs.running();
  const environmentId = (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
  return { id, given, environmentId };
}
const changesFor = async (by: Caller, environmentId: string) =>
  (await servicesOf(made, by).environments.getEnvironmentChanges({ environmentId })).changes;
const diffFor = (by: Caller, environmentId: string, base = DiffBase.UNSPECIFIED, token = "", pageSize = 0) =>
  servicesOf(made, by).environments.getEnvironmentDiff({
    environmentId,
    base,
    pagination: { token, pageSize },
  });
const share = (conversationSharingPolicy: Sharing) =>
  operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).updateOrganizationPolicies({
    organizationId: caller.organizationId,
    agentPolicy: { conversationSharingPolicy },
  });
const storedFiles = async (environmentId: string) =>
  (
    await builderOf(made.store.reader)
      .selectFrom("environment_file_diff")
      .select("place")
      .where("environment_id", "=", environmentId)
      .execute()
  ).length;

describe("a report of changes", () => {
  test("is shown as a summary, as diffs in pages, and in the outputs of the run", async () => {
    const { id, environmentId } = await runAtWork();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a", "ship/b", "ship/c"));
    const changes = await changesFor(caller, environmentId);
    expect(changes).toMatchObject({ counts: { addedFiles: 3, addedLines: 3n } });
    expect(changes?.repositories[0]).toMatchObject({ folder: "ship", branch: "fix", commitsAhead: 2 });
    const first = await diffFor(caller, environmentId, DiffBase.UNSPECIFIED, "", 2);
    expect(first.files.map(({ path }) => path)).toEqual(["ship/a", "ship/b"]);
    expect([first.digest, first.filesLeftOut]).toEqual([changes?.digest, 3]);
    const next = first.pagination?.nextToken ?? "";
    const second = await diffFor(caller, environmentId, DiffBase.ENVIRONMENT, next, 2);
    expect(second.files.map(({ path }) => path)).toEqual(["ship/c"]);
    expect(second.pagination?.nextToken).toBe("");
    const turn = await diffFor(caller, environmentId, DiffBase.LAST_TURN);
    expect(turn.files.map(({ path }) => path)).toEqual(["ship/c"]);
    expect(turn.digest).not.toBe(first.digest);
    await expect(diffFor(caller, environmentId, DiffBase.LAST_TURN, next)).rejects.toMatchObject({
      reason: ErrorReason.PAGE_TOKEN_INVALID,
    });
    const { outputs } = (await runs.get(id))?.status ?? {};
    expect(outputs?.added_files?.value).toEqual({ case: "intValue", value: 3n });
    expect(outputs?.branch?.value).toEqual({ case: "stringValue", value: "fix" });
    expect(outputs?.changes_digest?.value).toEqual({ case: "stringValue", value: changes?.digest });
  });

  test("replaces the one before; one of the same state changes the time alone", async () => {
    const { id, environmentId } = await runAtWork();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a", "ship/b"));
    const before = await changesFor(caller, environmentId);
    const version = (await runs.get(id))?.status?.statusVersion ?? 0n;
    made.clock.now += 5_000;
    await reportAs(runner.caller, reportOf(environmentId, "ship/a", "ship/b"));
    const same = await changesFor(caller, environmentId);
    expect(same?.digest).toBe(before?.digest);
    expect(same?.refreshedAt?.seconds).toBe((before?.refreshedAt?.seconds ?? 0n) + 5n);
    expect((await runs.get(id))?.status?.statusVersion).toBe(version);
    await reportAs(runner.caller, reportOf(environmentId, "ship/c"));
    expect((await diffFor(caller, environmentId)).files.map(({ path }) => path)).toEqual(["ship/c"]);
    expect((await runs.get(id))?.status?.statusVersion).toBe(version + 1n);
    await reportAs(runner.caller, { environmentId });
    expect(await storedFiles(environmentId)).toBe(0);
  });

  test("is taken from the runner of the environment alone, once for each base", async () => {
    const { environmentId } = await runAtWork();
    const other = await registeredRunner(made, caller, { name: "south" });
    const abroad = await registeredRunner(made, stranger, { name: "abroad" });
    for (const by of [other.caller, abroad.caller]) {
      await expect(reportAs(by, reportOf(environmentId, "ship/a"))).rejects.toMatchObject({
        reason: ErrorReason.NOT_FOUND,
      });
    }
    const twice = [{ base: DiffBase.ENVIRONMENT }, { base: DiffBase.ENVIRONMENT }];
    await expect(reportAs(runner.caller, { environmentId, diffs: twice })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
    });
    await expect(changesFor(caller, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  });
});

describe("the changes of an environment", () => {
  test("are read by the group that a run in it is shared with, until retention takes the run away", async () => {
    const { id, environmentId } = await runAtWork();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a"));
    // Of another run in it nothing is shared.
    const context = { case: "environmentId", value: environmentId } as const;
    const other = await runs.start({ codeContext: { context } });
    await runs.agents.stopAgentExecution({ agentExecutionId: other });
    const { organizationId } = caller;
    const groups = operationsOf(GroupContract, new GroupService(made.deps), caller);
    const { group } = await groups.createGroup({ organizationId, name: "Readers" });
    const groupId = group?.id ?? "";
    await groups.createMembership({ groupId, subject: member.subject });
    const run = { resourceType: ResourceType.AGENT_EXECUTION, resourceId: id };
    await groups.createRoleAssignment({ groupId, ...run, role: ResourceRole.READ });
    expect((await changesFor(member, environmentId))?.environmentId).toBe(environmentId);
    await made.store.write(
      SYSTEM,
      "test",
      async (tx) => void (await hideAgentExecutions(tx, caller, [id], "test")),
      within(caller),
    );
    await expect(changesFor(member, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    expect((await changesFor(caller, environmentId))?.environmentId).toBe(environmentId);
  });

  test("are read by those who may read a run in it, by its creator and by administrators", async () => {
    const { environmentId } = await runAtWork();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a"));
    const denied = { reason: ErrorReason.PERMISSION_DENIED };
    await expect(changesFor(member, environmentId)).rejects.toMatchObject(denied);
    await expect(diffFor(member, environmentId)).rejects.toMatchObject(denied);
    await share(Sharing.ORGANIZATION);
    expect((await changesFor(member, environmentId))?.environmentId).toBe(environmentId);
    await expect(changesFor(stranger, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
    await expect(diffFor(stranger, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await share(Sharing.DISABLED);
    const own = runsOn(made, member, runner);
    const { id } = await own.running();
    const ofMember = (await own.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
    await reportAs(runner.caller, reportOf(ofMember, "ship/a"));
    expect((await changesFor(member, ofMember))?.environmentId).toBe(ofMember);
    expect((await changesFor(caller, ofMember))?.environmentId).toBe(ofMember);
  });

  test("without a run are its creator's and the administrators', however runs are shared", async () => {
    const { environment } = await servicesOf(made, caller).environments.createEnvironment({
      spec: { machine: { class: runner.classId } },
    });
    const environmentId = environment?.id ?? "";
    await runs.bringUp();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a"));
    await share(Sharing.ORGANIZATION);
    await expect(changesFor(member, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    await share(Sharing.DISABLED);
    expect((await changesFor(caller, environmentId))?.environmentId).toBe(environmentId);
    await servicesOf(made, caller).environments.deleteEnvironment({ environmentId, force: true });
    await expect(changesFor(caller, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    expect(await storedFiles(environmentId)).toBe(0);
  });

  test("outlive the environment as long as the run is there", async () => {
    const { id, given, environmentId } = await runAtWork();
    await reportAs(runner.caller, reportOf(environmentId, "ship/a"));
    await servicesOf(made, caller).environments.deleteEnvironment({ environmentId, force: true });
    await runs.finish(given, Outcome.STOPPED);
    expect((await diffFor(caller, environmentId)).files.map(({ path }) => path)).toEqual(["ship/a"]);
    expect((await runs.get(id))?.status?.outputs.added_files?.value).toEqual({ case: "intValue", value: 1n });
    await expect(changesFor(member, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    await expect(diffFor(caller, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    expect(await storedFiles(environmentId)).toBe(0);
  });
});
