import { clone, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Environment, EnvironmentPhase, EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import {
  type ListEnvironmentsRequestSchema,
  ListEnvironmentsRequest_SortField as SortField,
} from "#gen/service/v1/environment_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { SortOrder } from "#gen/service/v1/pagination_pb.js";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { updateEnvironment } from "../../../src/store/environment/environment.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { MINUTE_MS, openTestStore, START_MS, type TestStore, userOf } from "../../harness/test-store.ts";
import { type Services, servicesOf } from "../services.ts";

type Init = Extract<MessageInitShape<typeof ListEnvironmentsRequestSchema>, { $typeName?: never }>;

const SESSION = "019b0000-0000-7000-8000-00000000000a";

let testStore: TestStore;
let own: Services;
let all: Environment[];
let projectId: string;
let runnerId: string;
let colleagueId: string;

/** 24 environments: of two users, some of a project, some on a runner, some in a session, two in three archived. */
beforeAll(async () => {
  testStore = openTestStore();
  const caller = await testStore.createOrganization("harbour");
  colleagueId = testStore.newId();
  own = servicesOf(testStore, caller);
  const colleague = servicesOf(testStore, userOf(caller, colleagueId));
  projectId = await own.project("ship");
  const { classId, ...made } = await own.runnerWithClass("remote");
  runnerId = made.runnerId;
  all = [];
  for (let index = 0; index < 24; index++) {
    testStore.clock.now = START_MS + index * MINUTE_MS;
    const who = index % 4 === 0 ? colleague : own;
    const spec = index % 3 === 0 ? { machine: { class: classId } } : {};
    const common = { name: `Boot-${index}`, sessionId: index % 5 === 0 ? SESSION : "", spec };
    const { environment } =
      index % 2 === 0
        ? await who.environments.createEnvironmentFromProject({ ...common, projectId })
        : await who.environments.createEnvironment(common);
    if (!environment) throw new Error("nothing was created");
    const after = clone(EnvironmentSchema, environment);
    if (after.status && index % 6 === 0) after.status.phase = EnvironmentPhase.STOPPED;
    if (after.metadata && index % 3 !== 1) {
      // In pairs and backwards, so that there are ties and the order is not that of the ids.
      after.metadata.archivedAt = timestampFromMs(START_MS - Math.floor(index / 4) * MINUTE_MS);
    }
    await testStore.store.write(SYSTEM, "test", (tx) => updateEnvironment(tx, caller, environment, after));
    all.push(after);
  }
});
afterAll(() => testStore.close());

/** Every page of a query, each of `pageSize`. */
async function pages(init: Init, pageSize: number): Promise<string[][]> {
  const found: string[][] = [];
  let token = "";
  do {
    const page = await own.environments.listEnvironments({ ...init, pagination: { pageSize, token } });
    found.push(page.environments.map(({ id }) => id));
    token = page.pagination?.nextToken ?? "";
  } while (token !== "");
  return found;
}

const archivedMs = ({ metadata }: Environment) =>
  metadata?.archivedAt ? timestampMs(metadata.archivedAt) : Number.POSITIVE_INFINITY;

describe("the order of environments", () => {
  const byId = (one: Environment, other: Environment) => (one.id < other.id ? -1 : 1);
  const byArchival = (one: Environment, other: Environment) => {
    const [first, second] = [archivedMs(one), archivedMs(other)];
    return first === second ? byId(one, other) : first - second;
  };

  test.each([
    ["by id ascending when nothing is asked", undefined, undefined, byId],
    ["by id ascending", SortField.ID, SortOrder.ASC, byId],
    ["by id descending", SortField.ID, SortOrder.DESC, (a: Environment, b: Environment) => -byId(a, b)],
    ["by archival ascending, the unarchived last", SortField.ARCHIVED_AT, undefined, byArchival],
    [
      "by archival descending, the unarchived first",
      SortField.ARCHIVED_AT,
      SortOrder.DESC,
      (a: Environment, b: Environment) => -byArchival(a, b),
    ],
  ])("is %s, on pages of every size", async (_, field, order, compare) => {
    const expected = all.toSorted(compare).map(({ id }) => id);
    const init: Init = field === undefined ? {} : { sort: { field, ...(order && { order }) } };
    for (const pageSize of [1, 2, 3, 5, 7, 24, 100]) {
      const found = await pages(init, pageSize);
      expect(found.flat()).toEqual(expected);
      expect(found).toHaveLength(Math.ceil(all.length / pageSize));
    }
  });

  test("binds a page token to its sort and filter", async () => {
    const { pagination } = await own.environments.listEnvironments({ pagination: { pageSize: 2 } });
    const token = pagination?.nextToken ?? "";
    const refused = { reason: ErrorReason.PAGE_TOKEN_INVALID };
    await expect(
      own.environments.listEnvironments({ pagination: { token }, sort: { order: SortOrder.DESC } }),
    ).rejects.toMatchObject(refused);
    await expect(
      own.environments.listEnvironments({ pagination: { token }, filter: { search: "boot" } }),
    ).rejects.toMatchObject(refused);
  });
});

describe("the filter of environments", () => {
  const cases: [string, () => Init["filter"], (environment: Environment, index: number) => boolean][] = [
    ["runner", () => ({ runnerIds: [runnerId] }), (each) => each.metadata?.runnerId === runnerId],
    ["runner kind", () => ({ runnerKinds: [RunnerKind.REMOTE] }), (each) => each.metadata?.runnerId !== ""],
    ["a kind of no runner", () => ({ runnerKinds: [RunnerKind.LOCAL] }), () => false],
    [
      "phase",
      () => ({ statusPhases: [EnvironmentPhase.STOPPED] }),
      (each) => each.status?.phase === EnvironmentPhase.STOPPED,
    ],
    [
      "several phases",
      () => ({ statusPhases: [EnvironmentPhase.STOPPED, EnvironmentPhase.CREATING] }),
      () => true,
    ],
    ["creator", () => ({ creatorIds: [colleagueId] }), (each) => each.metadata?.creator?.id === colleagueId],
    ["project", () => ({ projectIds: [projectId] }), (each) => each.metadata?.projectId === projectId],
    ["session", () => ({ sessionIds: [SESSION] }), (each) => each.metadata?.sessionId === SESSION],
    [
      "creation before a time, that time left out",
      () => ({ createdBefore: timestampFromMs(START_MS + 7 * MINUTE_MS) }),
      (_, index) => index < 7,
    ],
    [
      "creation before a time within a millisecond",
      () => ({ createdBefore: { ...timestampFromMs(START_MS + 7 * MINUTE_MS), nanos: 1 } }),
      (_, index) => index < 8,
    ],
    [
      "part of the name in another case",
      () => ({ search: "OOT-1" }),
      (_, index) => `${index}`.startsWith("1"),
    ],
    ["part of the id", () => ({ search: all[3]?.id.slice(4) ?? "" }), (_, index) => index === 3],
    ["name and id across their border", () => ({ search: "3\n0" }), () => false],
    [
      "project and session together",
      () => ({ projectIds: [projectId], sessionIds: [SESSION] }),
      (_, index) => index % 10 === 0,
    ],
  ];

  test.each(cases)("by %s finds and counts what matches", async (_, filter, matches) => {
    const expected = all.filter(matches).map(({ id }) => id);
    const init = { filter: filter() ?? {} };
    expect((await pages(init, 4)).flat()).toEqual(expected);
    const { count } = await own.environments.listEnvironments({ ...init, count: { include: true } });
    expect(count?.value).toBe(expected.length);
  });
});
