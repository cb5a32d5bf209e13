import { clone, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import {
  WorkflowExecutionPhase as Phase,
  type Workflow,
  WorkflowSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  type ListWorkflowsRequestSchema,
  ListWorkflowsRequest_SortField as SortField,
  WorkflowService as WorkflowContract,
} from "#gen/service/v1/workflow_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { fold } from "../../../src/domain/text/fold.ts";
import { WorkflowService } from "../../../src/services/workflow/workflow-service.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { removeWorkflow, setLastCompletion, updateWorkflow } from "../../../src/store/workflow/workflow.ts";
import { replay } from "../../harness/seed.ts";
import {
  MINUTE_MS,
  openTestStore,
  operationsOf,
  START_MS,
  type TestStore,
  userOf,
} from "../../harness/test-store.ts";
import { insertRun } from "./workflow-run.ts";

type Init = Extract<MessageInitShape<typeof ListWorkflowsRequestSchema>, { $typeName?: never }>;

const draining = new AbortController().signal;
const NAMES = [
  "nightly",
  "Nightly",
  "NIGHTLY",
  "Weekly",
  "ärger",
  "Ärger",
  "zoo",
  "東京",
  "🚀 launch",
  "a",
  "Z",
  "_",
];

let testStore: TestStore;
let caller: Caller;
let colleague: Caller;
let all: Workflow[];

const operations = (of: Caller) =>
  operationsOf(WorkflowContract, new WorkflowService({ ...testStore.deps, draining }), of);

async function make(of: Caller, name: string): Promise<Workflow> {
  const step = { step: { case: "task", value: { command: "true" } } } as const;
  const action = { limits: { maxParallel: 1, maxTotal: 1 }, steps: [step] };
  const { workflow } = await operations(of).createWorkflow({ name, description: `about ${name}`, action });
  if (!workflow) throw new Error("nothing was created");
  return workflow;
}

const complete = (of: Caller, { id }: Workflow, at: number) =>
  testStore.store.write(SYSTEM, "test", (tx) => setLastCompletion(tx, of, id, at));

/** 36 workflows, three of each name, of two users; of two in three an execution has come to its end. */
beforeAll(async () => {
  testStore = openTestStore();
  caller = await testStore.createOrganization("harbour");
  colleague = userOf(caller, testStore.newId());
  const stranger = await testStore.createOrganization("island");
  all = [];
  for (let index = 0; index < 3 * NAMES.length; index++) {
    testStore.clock.now = START_MS + index * MINUTE_MS;
    const workflow = await make(index % 4 === 0 ? colleague : caller, NAMES[index % NAMES.length] ?? "");
    // In pairs and backwards, so that there are ties and the order is not that of the ids.
    if (index % 3 !== 1) await complete(caller, workflow, completedAt(index) ?? 0);
    const run = (phase: Phase, more: Partial<Parameters<typeof insertRun>[3]> = {}) =>
      insertRun(testStore, caller, workflow.id, { phase, startedAt: testStore.clock.now, ...more });
    if (index % 2 === 0)
      await run(Phase.COMPLETED, { failedCount: index % 6 === 0 ? 1 : 0, failed: index % 6 === 0 });
    if (index % 5 === 0) await run(Phase.RUNNING, { finishedAt: null });
    // It failed as a whole, without an action that did.
    if (index % 7 === 0) await run(Phase.COMPLETED, { failed: true });
    if (index % 9 === 0) {
      await operations(caller).updateWorkflow({ workflowId: workflow.id, disabled: true });
    }
    all.push(workflow);
  }
  const theirs = await make(stranger, "Nightly");
  await insertRun(testStore, stranger, theirs.id, {
    phase: Phase.COMPLETED,
    startedAt: START_MS,
    failed: true,
    failedCount: 1,
  });
});
afterAll(() => testStore.close());

const completedAt = (index: number) =>
  index % 3 === 1 ? undefined : START_MS - Math.floor(index / 4) * MINUTE_MS;

/** Every page of a query, each of `pageSize`; between two of them something may happen. */
async function pages(init: Init, pageSize: number, between: () => Promise<unknown> = async () => {}) {
  const found: string[][] = [];
  let token = "";
  do {
    const page = await operations(caller).listWorkflows({ ...init, pagination: { pageSize, token } });
    found.push(page.workflows.map(({ id }) => id));
    token = page.pagination?.nextToken ?? "";
    if (token !== "") await between();
  } while (token !== "");
  return found;
}

type Compare = (one: Workflow, other: Workflow) => number;

const byId: Compare = (one, other) => (one.id < other.id ? -1 : 1);
const nameOf = ({ metadata }: Workflow) => fold(metadata?.name ?? "");
/** Code points compare as UTF-8 does. */
const byName: Compare = (one, other) =>
  Buffer.compare(Buffer.from(nameOf(one)), Buffer.from(nameOf(other))) || byId(one, other);
const byCompletion: Compare = (one, other) => {
  const [first, second] = [one, other].map(
    (each) => completedAt(all.indexOf(each)) ?? Number.NEGATIVE_INFINITY,
  );
  return first === second ? byId(one, other) : (first ?? 0) - (second ?? 0);
};
const reversed = (compare: Compare) => (one: Workflow, other: Workflow) => -compare(one, other);

describe("the order of workflows", () => {
  test.each<[string, SortField | undefined, SortOrder | undefined, Compare]>([
    ["by id ascending when nothing is asked", undefined, undefined, byId],
    ["by id descending", SortField.UNSPECIFIED, SortOrder.DESC, reversed(byId)],
    ["by name, without regard to case", SortField.NAME, undefined, byName],
    ["by name descending, exactly mirrored", SortField.NAME, SortOrder.DESC, reversed(byName)],
    [
      "by recent completion, what never completed last",
      SortField.RECENTLY_COMPLETED,
      undefined,
      reversed(byCompletion),
    ],
    ["by completion ascending, exactly mirrored", SortField.RECENTLY_COMPLETED, SortOrder.ASC, byCompletion],
  ])("is %s, on pages of every size", async (_, field, order, compare) => {
    const expected = all.toSorted(compare).map(({ id }) => id);
    const init: Init = field === undefined ? {} : { sort: { field, ...(order && { order }) } };
    for (const pageSize of [1, 2, 5, 7, 12, 36, 100]) {
      const found = await pages(init, pageSize);
      expect(found.flat()).toEqual(expected);
      expect(found).toHaveLength(Math.ceil(all.length / pageSize));
    }
  });

  test("binds a page token to its sort and filter", async () => {
    const { pagination } = await operations(caller).listWorkflows({
      pagination: { pageSize: 2 },
      sort: { field: SortField.NAME },
    });
    const again = { pagination: { token: pagination?.nextToken ?? "" } };
    const refused = { reason: ErrorReason.PAGE_TOKEN_INVALID };
    for (const other of [{}, { sort: { field: SortField.NAME, order: SortOrder.DESC } }]) {
      await expect(operations(caller).listWorkflows({ ...again, ...other })).rejects.toMatchObject(refused);
    }
    const narrowed = { ...again, sort: { field: SortField.NAME }, filter: { search: "n" } };
    await expect(operations(caller).listWorkflows(narrowed)).rejects.toMatchObject(refused);
  });
});

describe("the filter of workflows", () => {
  const at = (index: number) => timestampFromMs(START_MS + index * MINUTE_MS);
  const newestIs = (phase: Phase) => (_: Workflow, index: number) => {
    const runs = [...(index % 2 ? [] : [Phase.COMPLETED]), ...(index % 5 ? [] : [Phase.RUNNING])];
    if (index % 7 === 0) runs.push(Phase.COMPLETED);
    return runs.at(-1) === phase;
  };
  const cases: [string, () => Init["filter"], (workflow: Workflow, index: number) => boolean][] = [
    [
      "ids",
      () => ({ workflowIds: [all[3]?.id ?? "", all[5]?.id ?? ""] }),
      (_, index) => index === 3 || index === 5,
    ],
    ["creator", () => ({ creatorIds: [colleague.subject.id] }), (_, index) => index % 4 === 0],
    ["part of the name in another case", () => ({ search: "IGHT" }), (_, index) => index % 12 < 3],
    ["part of the description", () => ({ search: "about Ä" }), (_, index) => [4, 5].includes(index % 12)],
    ["part of the id", () => ({ search: all[3]?.id.slice(4) ?? "" }), (_, index) => index === 3],
    ["name and description across their border", () => ({ search: "a\nabout" }), () => false],
    ["the phase of the newest execution", () => ({ statusPhases: [Phase.RUNNING] }), newestIs(Phase.RUNNING)],
    ["another phase of it", () => ({ statusPhases: [Phase.COMPLETED] }), newestIs(Phase.COMPLETED)],
    ["a phase that none is in", () => ({ statusPhases: [Phase.STOPPED, Phase.DELETED] }), () => false],
    [
      "a failed action at any time",
      () => ({ hasFailedExecutionSince: at(0) }),
      (_, index) => index % 6 === 0,
    ],
    [
      "one since a time, itself included",
      () => ({ hasFailedExecutionSince: at(12) }),
      (_, index) => index % 6 === 0 && index >= 12,
    ],
    [
      "one since a time within a millisecond",
      () => ({ hasFailedExecutionSince: { ...at(12), nanos: 1 } }),
      (_, index) => index % 6 === 0 && index > 12,
    ],
    ["being enabled", () => ({ disabled: false }), (_, index) => index % 9 !== 0],
    ["being disabled", () => ({ disabled: true }), (_, index) => index % 9 === 0],
    [
      "several at once",
      () => ({ creatorIds: [colleague.subject.id], statusPhases: [Phase.COMPLETED], search: "nightly" }),
      (workflow, index) => index % 4 === 0 && index % 12 < 3 && newestIs(Phase.COMPLETED)(workflow, index),
    ],
  ];

  test.each(cases)("by %s finds and counts what matches", async (_, filter, matches) => {
    const expected = all.filter(matches).map(({ id }) => id);
    const init = { filter: filter() ?? {} };
    expect((await pages(init, 4)).flat()).toEqual(expected);
    const { count } = await operations(caller).listWorkflows({ ...init, count: { include: true } });
    expect(count?.value).toBe(expected.length);
  });

  test("by a time that JSON cannot say is refused", async () => {
    const filter = { hasFailedExecutionSince: { seconds: 253_402_300_800n } };
    await expect(operations(caller).listWorkflows({ filter })).rejects.toMatchObject({
      reason: ErrorReason.VALUE_UNUSABLE,
      metadata: { field: "filter.hasFailedExecutionSince" },
    });
  });
});

/** While pages are read, other workflows are renamed, completed and removed: what stays is listed once. */
test("a workflow that stays as it is appears on exactly one page, whatever happens to others meanwhile", async () => {
  const field = fc.constantFrom(SortField.NAME, SortField.RECENTLY_COMPLETED);
  const order = fc.constantFrom(SortOrder.ASC, SortOrder.DESC);
  const name = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
  const happening = fc.record({
    who: fc.nat(11),
    what: fc.constantFrom("rename", "complete", "remove"),
    name,
    at: fc.nat(20),
  });
  await fc.assert(
    fc.asyncProperty(
      field,
      order,
      fc.integer({ min: 1, max: 9 }),
      fc.array(happening, { maxLength: 12 }),
      async (field, order, pageSize, happenings) => {
        const restless: Workflow[] = [];
        for (let made = 0; made < 12; made++) restless.push(await make(caller, `r${made % 4}`));
        const left = [...happenings];
        const gone = new Set<string>();
        const between = async () => {
          const next = left.shift();
          const before = next && restless[next.who];
          if (!next || !before || gone.has(before.id)) return;
          const after = clone(WorkflowSchema, before);
          if (after.metadata) after.metadata.name = next.name;
          await testStore.store.write(SYSTEM, "test", async (tx) => {
            if (next.what === "rename") await updateWorkflow(tx, caller, before, after);
            if (next.what === "complete")
              await setLastCompletion(tx, caller, before.id, START_MS - next.at * MINUTE_MS);
            if (next.what === "remove") await removeWorkflow(tx, caller, before);
          });
          if (next.what === "remove") gone.add(before.id);
          else if (next.what === "rename") restless[next.who] = after;
        };
        const found = (await pages({ sort: { field, order } }, pageSize, between)).flat();
        const settled = new Set(all.map(({ id }) => id));
        const compare = field === SortField.NAME ? byName : byCompletion;
        const expected = all
          .toSorted(order === SortOrder.ASC ? compare : reversed(compare))
          .map(({ id }) => id);
        expect(found.filter((id) => settled.has(id))).toEqual(expected);
        await testStore.store.write(SYSTEM, "test", async (tx) => {
          for (const each of restless) if (!gone.has(each.id)) await removeWorkflow(tx, caller, each);
        });
      },
    ),
    { ...replay, numRuns: 40 },
  );
});
