import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  EnvironmentWorkService as EnvironmentWorkContract,
  type ReportEnvironmentConnectionsRequestSchema,
} from "#gen/runner/v1/environment_work_service_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import { EnvironmentConnection_Refusal as Refusal } from "#gen/service/v1/environment_connection_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { runsInEnvironment } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { addAgent, type Runs, runsOn } from "../agent/agents.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

type Report = MessageInitShape<typeof ReportEnvironmentConnectionsRequestSchema>;

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
  const second = await insertTestMember(made.store, made.keys, { organizationId, email: "b@example.org" });
  const tokenId = await made.issueTokenId(second.userId);
  member = { ...userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId), role: "member" };
});
afterAll(() => made.close());

const reportAs = (by: Caller, report: Report) => {
  const service = new EnvironmentWorkService({ ...workDependencies(made), runs: runsInEnvironment });
  return operationsOf(EnvironmentWorkContract, service, by).reportEnvironmentConnections(report);
};
const idOf = (number: number) => `01900000-0000-4000-8000-${String(number).padStart(12, "0")}`;
const connection = (number: number, refusal = Refusal.NOT_ALLOWED) => ({
  id: idOf(number),
  host: `h${number}.example`,
  port: 443,
  rule: refusal === Refusal.NOT_ALLOWED ? "" : "hosts[0]",
  refusal,
  endedAt: { seconds: 1_700_000_000n, nanos: 0 },
});
const several = (from: number, count: number, refusal?: Refusal) =>
  Array.from({ length: count }, (_, index) => connection(from + index, refusal));
const listFor = (by: Caller, environmentId: string, token = "", pageSize = 100) =>
  servicesOf(made, by).environments.listEnvironmentConnections({
    environmentId,
    pagination: { token, pageSize },
  });
const storedOf = async (environmentId: string) =>
  (
    await builderOf(made.store.reader)
      .selectFrom("environment_connection")
      .select("id")
      .where("environment_id", "=", environmentId)
      .orderBy("id")
      .execute()
  ).map(({ id }) => id);

/** The audit and event rows of something that is done. */
async function changesOf(act: () => Promise<unknown>) {
  const before = await made.history(caller);
  await act();
  const after = await made.history(caller);
  return { audit: after.audit.slice(before.audit.length), events: after.events.slice(before.events.length) };
}

/** A run that is going on, and its environment. */
async function runAtWork() {
  const { id, given } = await runs.running();
  const environmentId = (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
  return { id, given, environmentId };
}

describe("a report of connections", () => {
  test("is shown in pages, and what was refused is an event and in the audit trail", async () => {
    const { environmentId } = await runAtWork();
    const allowed = { ...connection(2, Refusal.UNSPECIFIED), sentBytes: 5n, receivedBytes: 7n };
    const changes = await changesOf(() =>
      reportAs(runner.caller, { environmentId, connections: [connection(1), allowed, connection(3)] }),
    );
    const first = await listFor(caller, environmentId, "", 2);
    expect(first.connections).toMatchObject([
      { host: "h1.example", port: 443, rule: "", refusal: Refusal.NOT_ALLOWED },
      { host: "h2.example", rule: "hosts[0]", refusal: 0, sentBytes: 5n, receivedBytes: 7n },
    ]);
    expect(first.leftOut).toBe(false);
    const second = await listFor(caller, environmentId, first.pagination?.nextToken, 2);
    expect(second.connections.map(({ host }) => host)).toEqual(["h3.example"]);
    expect(second.pagination?.nextToken).toBe("");
    expect(changes.audit).toMatchObject([
      {
        operation: "environment/connections_refused",
        subject_type: "environment",
        subject_id: environmentId,
      },
    ]);
    expect(changes.audit[0]?.diff).toContain("h3.example");
    expect(changes.audit[0]?.diff).not.toContain("h2.example");
    expect(changes.events).toMatchObject([{ kind: "updated", resource_id: environmentId }]);
    expect([...made.store.measures.outcomes("isolation refusal")]).toEqual([["not_allowed", 2]]);
  });

  test("may come again, also in parts: connections are known by their ids", async () => {
    const { environmentId } = await runAtWork();
    const report = { environmentId, connections: several(1, 2) };
    await reportAs(runner.caller, report);
    const again = await changesOf(() => reportAs(runner.caller, report));
    expect([again.audit, again.events]).toEqual([[], []]);
    await reportAs(runner.caller, {
      environmentId,
      connections: [connection(2), connection(3), connection(3)],
    });
    expect(await storedOf(environmentId)).toEqual([1, 2, 3].map(idOf));
    // Another environment has connections of its own.
    const other = await runAtWork();
    await reportAs(runner.caller, { environmentId: other.environmentId, connections: several(1, 1) });
    expect(await storedOf(other.environmentId)).toEqual([idOf(1)]);
  });

  test("of more than 1,000 refused connections leaves the others out, and no allowed one", async () => {
    const { environmentId } = await runAtWork();
    for (let from = 1; from < 999; from += 200)
      await reportAs(runner.caller, {
        environmentId,
        connections: several(from, Math.min(200, 1_000 - from)),
      });
    expect([(await storedOf(environmentId)).length, (await listFor(caller, environmentId)).leftOut]).toEqual([
      999,
      false,
    ]);
    await reportAs(runner.caller, { environmentId, connections: several(1_000, 1) });
    expect((await listFor(caller, environmentId)).leftOut).toBe(false);
    const beyond = await changesOf(() =>
      reportAs(runner.caller, { environmentId, connections: several(1_001, 1) }),
    );
    expect(beyond.events).toEqual([]);
    expect((await listFor(caller, environmentId)).leftOut).toBe(true);
    expect((await storedOf(environmentId)).at(-1)).toBe(idOf(1_000));
    await reportAs(runner.caller, { environmentId, connections: several(2_000, 1, Refusal.UNSPECIFIED) });
    expect((await storedOf(environmentId)).at(-1)).toBe(idOf(2_000));
  });

  test("says by itself that the runner left some out", async () => {
    const { environmentId } = await runAtWork();
    await reportAs(runner.caller, { environmentId, leftOut: true });
    expect(await listFor(caller, environmentId)).toMatchObject({ connections: [], leftOut: true });
    await reportAs(runner.caller, { environmentId, connections: several(1, 1) });
    expect((await listFor(caller, environmentId)).leftOut).toBe(true);
  });

  test("is taken from the runner of the environment alone, with times in range", async () => {
    const { environmentId } = await runAtWork();
    const other = await registeredRunner(made, caller, { name: "south" });
    const abroad = await registeredRunner(made, stranger, { name: "abroad" });
    for (const by of [other.caller, abroad.caller])
      await expect(reportAs(by, { environmentId, connections: several(1, 1) })).rejects.toMatchObject({
        reason: ErrorReason.NOT_FOUND,
      });
    const endedAt = { seconds: 253_402_300_800n, nanos: 0 };
    await expect(
      reportAs(runner.caller, { environmentId, connections: [{ ...connection(1), endedAt }] }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
    expect(await storedOf(environmentId)).toEqual([]);
  });
});

describe("the connections of an environment", () => {
  test("are read as its changes are, also while nothing was reported", async () => {
    const { environmentId } = await runAtWork();
    expect((await listFor(caller, environmentId)).connections).toEqual([]);
    await reportAs(runner.caller, { environmentId, connections: several(1, 1) });
    await expect(listFor(member, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    await expect(listFor(stranger, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    const own = runsOn(made, member, runner);
    const { id } = await own.running();
    const ofMember = (await own.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
    await reportAs(runner.caller, { environmentId: ofMember, connections: several(1, 1) });
    for (const by of [member, caller]) expect((await listFor(by, ofMember)).connections).toHaveLength(1);
  });

  test("outlive the environment as long as the run is there", async () => {
    const { id, given, environmentId } = await runAtWork();
    await reportAs(runner.caller, { environmentId, connections: several(1, 2) });
    await servicesOf(made, caller).environments.deleteEnvironment({ environmentId, force: true });
    await runs.finish(given, Outcome.STOPPED);
    expect((await listFor(caller, environmentId)).connections).toHaveLength(2);
    await expect(listFor(member, environmentId)).rejects.toMatchObject({
      reason: ErrorReason.PERMISSION_DENIED,
    });
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    await expect(listFor(caller, environmentId)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    expect(await storedOf(environmentId)).toEqual([]);
  });
});
