import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { AgentReviewService as ReviewContract } from "#gen/service/v1/agent_review_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { removeDeletedProjects } from "../../../src/jobs/project-removal.ts";
import { applyRetention } from "../../../src/jobs/retention/retention.ts";
import { continueStops } from "../../../src/jobs/stops.ts";
import { removeDeletedWorkflows } from "../../../src/jobs/workflow-removal.ts";
import { AgentReviewService } from "../../../src/services/agent/review/agent-review-service.ts";
import { findOrganizationsWithBytes } from "../../../src/store/identity/organization.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { printedRandom, type Random } from "../../harness/random.ts";
import { type RawData, withRawData } from "../../harness/raw-data.ts";
import { countedBytes, storageProblems, summedBytes, unlistedTables } from "../../harness/stored-bytes.ts";
import { DAY_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { addAgent, runsOn } from "../agent/agents.ts";
import { registeredRunner } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";
import { runnerOf, workflowsOf } from "../workflow/running-workflow.ts";

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

let made: TestStore;
beforeEach(() => {
  made = openTestStore();
});
afterEach(() => made.close());

/** Reads the rows without the store. */
const reading = <T>(read: (raw: RawData) => Promise<T>) => withRawData(made.dataDir, read);

/** What one organization does, each time another thing; nothing that fails by a rule is a failure of the test. */
async function actions(caller: Caller, random: Random): Promise<(() => Promise<unknown>)[]> {
  const services = servicesOf(made, caller);
  const workflows = workflowsOf(made, caller);
  const runner = await runnerOf(made, caller);
  const home = await registeredRunner(made, caller, { name: "south" });
  const runs = runsOn(made, caller, home);
  const reviews = operationsOf(ReviewContract, new AgentReviewService(made.deps), caller);
  const own = {
    projects: [] as string[],
    workflows: [] as string[],
    runs: [] as string[],
    drafts: [] as string[],
  };
  const text = () => "é".repeat(random.integer(0, 2_000));
  const kept = async (list: string[], id: Promise<string>) => list.push(await id);
  const one = (list: string[]) => (list.length > 0 ? random.pick(list) : "");
  return [
    () => kept(own.projects, services.project(`p${random.integer(0, 1e6)}`)),
    () => services.projects.updateProject({ projectId: one(own.projects), technicalDescription: text() }),
    () => services.use(one(own.projects)),
    () => services.projects.deleteProject({ projectId: one(own.projects) }),
    () => removeDeletedProjects(made.store),
    () => kept(own.workflows, workflows.make({ description: text().slice(0, 500) })),
    () => workflows.updateWorkflow({ workflowId: one(own.workflows), description: text().slice(0, 500) }),
    () => workflows.start(one(own.workflows)),
    async () => {
      const [work] = await runner.lease();
      if (!work) return;
      const { leaseId, fence } = work;
      await runner.operations.reportProgress({ leaseId, fence, logs: [{ data: random.bytes(5_000) }] });
      if (random.chance(0.8)) await runner.complete(work, text().slice(0, 100));
    },
    () => workflows.deleteWorkflow({ workflowId: one(own.workflows), force: true }),
    () => continueStops(made.store, new AbortController().signal),
    () => removeDeletedWorkflows(made.store),
    async () => {
      made.clock.now += 3 * DAY_MS;
      const keep = { days: 1, count: 3 };
      const retention = { executions: keep, agentExecutions: keep, triggerEntries: keep, events: keep };
      await applyRetention(made.store, retention, made.clock.now);
    },
    () => kept(own.runs, runs.start()),
    () => {
      const image = {
        case: "image",
        value: { data: Uint8Array.of(...PNG, ...random.bytes(3_000)), mimeType: "image/png" },
      } as const;
      const content = { case: "text", value: { content: text() } } as const;
      const value = { id: `i${random.integer(0, 1e9)}`, inputs: [{ input: image }, { input: content }] };
      return runs.agents.sendToAgentExecution({
        agentExecutionId: one(own.runs),
        input: { case: "userInput", value },
      });
    },
    async () => {
      const { draft } = await reviews.createAgentReviewDraft({
        agentExecutionId: one(own.runs),
        summary: text(),
      });
      own.drafts.push(draft?.id ?? "");
    },
    () => reviews.updateAgentReviewDraft({ draftId: one(own.drafts), revision: 1n, summary: text() }),
    () => reviews.deleteAgentReviewDraft({ draftId: one(own.drafts) }),
    () => runs.agents.stopAgentExecution({ agentExecutionId: one(own.runs) }),
    () => runs.agents.deleteAgentExecution({ agentExecutionId: one(own.runs) }),
    // What fails after it wrote is taken back, and counted back.
    () =>
      made.store
        .write(SYSTEM, "test", async (tx) => {
          await builderOf(tx.db)
            .updateTable("project")
            .set({ body: "{}" })
            .where("organization_id", "=", caller.organizationId)
            .execute();
          throw new Error("meant to fail");
        })
        .catch(() => undefined),
  ];
}

test("the count is the sum of the rows after whatever was done in whichever order", async () => {
  const random = printedRandom("organization storage");
  await addAgent(made, null, { isDefault: true });
  const all = [
    ...(await actions(await made.createOrganization("harbour"), random)),
    ...(await actions(await made.createOrganization("island"), random)),
  ];
  let done = 0;
  for (let round = 0; round < 600; round++) {
    await random
      .pick(all)()
      .then(
        () => {
          done += 1;
        },
        () => undefined,
      );
    if (round % 20 === 0) expect(await reading(storageProblems)).toEqual([]);
  }
  expect(await reading(storageProblems)).toEqual([]);
  expect(done).toBeGreaterThan(300);
  expect([...(await reading(summedBytes)).values()].every((bytes) => bytes > 1_000)).toBe(true);
});

test("parts that go with what they belong to are counted out", async () => {
  const caller = await made.createOrganization("harbour");
  const stranger = await made.createOrganization("island");
  await addAgent(made, null, { isDefault: true });
  const workflows = workflowsOf(made, caller);
  const runner = await runnerOf(made, caller);
  await workflows.start(await workflows.make());
  const [work] = await runner.lease();
  if (!work) throw new Error("there is no work");
  const runs = runsOn(made, caller, await registeredRunner(made, caller, { name: "south" }));
  const agentExecutionId = await runs.start();
  const bytes = async () => {
    const counted = await reading(countedBytes);
    return [caller, stranger].map((each) => counted.get(each.organizationId) ?? 0);
  };
  const [before = 0, strangers] = await bytes();

  const { leaseId, fence } = work;
  await runner.operations.reportProgress({ leaseId, fence, logs: [{ data: new Uint8Array(5_000) }] });
  const image = { case: "image", value: { data: Uint8Array.of(...PNG), mimeType: "image/png" } } as const;
  await runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: { case: "userInput", value: { id: "seen", inputs: [{ input: image }] } },
  });
  expect((await bytes())[0]).toBeGreaterThan(before + 5_000 + PNG.length);
  await made.store.write(SYSTEM, "test", async ({ db }) => {
    await builderOf(db).deleteFrom("agent_execution").execute();
    await builderOf(db).deleteFrom("workflow_execution").execute();
  });
  const left = await builderOf(made.store.reader).selectFrom("step_log").selectAll().execute();
  expect([
    left,
    await builderOf(made.store.reader).selectFrom("agent_input_image").selectAll().execute(),
  ]).toEqual([[], []]);
  expect((await bytes())[1]).toBe(strangers);
  expect((await bytes())[0]).toBeLessThan(before);
  expect(await reading(storageProblems)).toEqual([]);
});

test("every table is counted, or said not to be", async () => {
  expect(await reading(unlistedTables)).toEqual([]);
});

test("the operator reads the count of each organization", async () => {
  const caller = await made.createOrganization("harbour");
  await made.createOrganization("island");
  await servicesOf(made, caller).project("pay");
  const found = (await findOrganizationsWithBytes(made.store.reader)).map(({ id, bytes }) => [id, bytes]);
  expect(new Map(found as [string, number][])).toEqual(await reading(summedBytes));
});
