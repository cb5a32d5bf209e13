import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { KyselyPlugin } from "kysely";
import {
  type AnswerRequestRequestSchema as AnswerSchema,
  EnvironmentQuestion_PushBranchSchema as PushBranchSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentWorkService as Contract } from "#gen/runner/v1/environment_work_service_pb.js";
import {
  EnvironmentPush_Stage as Stage,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import {
  EnvironmentService as EnvironmentContract,
  PushEnvironmentBranchRequestSchema as PushRequestSchema,
} from "#gen/service/v1/environment_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { LONG_RUNNING_MS, SILENT_MS, STREAM_LIVES_MS } from "../../../src/domain/runner/runner-questions.ts";
import { pushEnvironmentBranch } from "../../../src/services/access/push/push-operations.ts";
import { runsInEnvironment as runs } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { askerOf } from "../../../src/services/environment/environment-question.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { askLongRunning, waitEnd } from "../../../src/services/environment/long-running-question.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import {
  contextOf,
  MINUTE_MS,
  openTestStore,
  operationsOf,
  type TestStore,
} from "../../harness/test-store.ts";
import { until } from "../../harness/until.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { gitSpec, servicesOf } from "../services.ts";

const INSTANCE = "the first";
const REMOTE = "https://git.example.org/team/hello.git";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let environmentId: string;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  await runner.beginInstance({ instanceId: INSTANCE });
  const initializer = { specs: [gitSpec(REMOTE)] };
  const { environment } = await servicesOf(made, caller).environments.createEnvironment({
    spec: { machine: { class: runner.classId }, content: { initializer } },
  });
  environmentId = environment?.id ?? "";
});
afterEach(() => made.close());

/** Has the runner count as listening now. */
const listen = () =>
  made.store.write({ id: "test", principal: 0 }, "test", async ({ db }) => {
    await builderOf(db)
      .updateTable("runner")
      .set({ requests_until: made.clock.now + STREAM_LIVES_MS, seen_at: made.clock.now })
      .where("id", "=", runner.runnerId)
      .execute();
  });
/** Asks, or goes on waiting, for as long as the test's clock does not move. */
function ask({ branch = "b", outlivesCaller = true, store = made.store } = {}) {
  const leaving = new AbortController();
  const ctx = contextOf(EnvironmentContract.method.pushEnvironmentBranch, caller, leaving.signal);
  const deps = { ...workDependencies(made), store, until: waitEnd(made.clock.now, MINUTE_MS) };
  const value = create(PushBranchSchema, { branch });
  const outcome = askLongRunning(deps, askerOf(deps, ctx), runner.runnerId, {
    environmentId,
    question: { case: "pushBranch", value },
    answer: "branchPushed",
    isSame: (asked) => asked.case === "pushBranch" && asked.value.branch === branch,
    outlivesCaller,
  }).catch((error) => error);
  return { outcome, leave: () => leaving.abort(new Error("left")) };
}
type AnswerOf = NonNullable<MessageInitShape<typeof AnswerSchema>["answer"]>;
const answer = (questionId: string, given: AnswerOf, by = runner.caller) => {
  const service = new EnvironmentWorkService({ ...workDependencies(made), runs });
  const req = { questionId, instanceId: by === runner.caller ? INSTANCE : "", answer: given };
  return operationsOf(Contract, service, by).answerRequest(req);
};
const tell = (questionId: string, percent: number, by = runner.caller) =>
  answer(questionId, { case: "progress", value: { stage: Stage.SENDING, percent } }, by);
const rows = () =>
  builderOf(made.store.reader)
    .selectFrom("environment_question")
    .select(["id", "ends_at"])
    .orderBy("id")
    .execute();
const asked = async (count = 1) => (await until(rows, (found) => found.length === count)).map(({ id }) => id);
const ends = async () => (await rows()).map(({ ends_at }) => Number(ends_at));
/** Has those who wait look again, once so much time has passed. */
async function pass(ms: number, id = ""): Promise<void> {
  made.clock.now += ms;
  await made.store.write({ id: "test", principal: 0 }, "test", async (tx) => tx.touch(id));
}

test("a question that lasts is left for the next call, which receives the progress and then the answer", async () => {
  await listen();
  const first = ask();
  const [id = ""] = await asked();
  await pass(MINUTE_MS, id);
  expect(await first.outcome).toEqual({ isDone: false, progress: undefined });
  await tell(id, 40);
  // The runner need not listen for that.
  const second = ask();
  await pass(MINUTE_MS, id);
  expect(await second.outcome).toMatchObject({
    isDone: false,
    progress: { stage: Stage.SENDING, percent: 40 },
  });
  await answer(id, { case: "branchPushed", value: { commit: "c" } });
  expect(await ask().outcome).toMatchObject({ isDone: true, answer: { commit: "c" } });
  expect(await rows()).toEqual([]);
});

test("progress puts its end off, for an hour at most; without any it is over", async () => {
  await listen();
  const begun = made.clock.now;
  const first = ask();
  const [id = ""] = await asked();
  expect(await ends()).toEqual([begun + SILENT_MS]);
  for (let percent = 1; made.clock.now + SILENT_MS < begun + LONG_RUNNING_MS; percent++) {
    made.clock.now += SILENT_MS - 1;
    await tell(id, percent);
    expect(await ends()).toEqual([Math.min(made.clock.now + SILENT_MS, begun + LONG_RUNNING_MS)]);
  }
  expect(await first.outcome).toMatchObject({ isDone: false });
  made.clock.now = begun + LONG_RUNNING_MS;
  await expect(tell(id, 100)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  await listen();
  const silent = ask();
  const [, next = ""] = await asked(2);
  await pass(SILENT_MS, next);
  expect(await silent.outcome).toMatchObject({ metadata: { cause: "no_answer" } });
});

test("progress that comes while its end is looked at puts that off", async () => {
  await listen();
  const first = ask();
  const [id = ""] = await asked();
  await pass(MINUTE_MS, id);
  await first.outcome;
  made.clock.now += SILENT_MS - MINUTE_MS - 1;
  const [read, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const late: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      read.resolve();
      await released.promise;
      return result;
    },
  };
  const second = ask({ store: { ...made.store, reader: builderOf(made.store.reader).withPlugin(late) } });
  await read.promise;
  await tell(id, 40);
  made.clock.now += 1;
  released.resolve();
  await pass(MINUTE_MS, id);
  expect(await second.outcome).toMatchObject({ isDone: false, progress: { percent: 40 } });
  expect(await rows()).toMatchObject([{ id }]);
});

test("calls that wait for the same share its answer, or ask again where another was answered first", async () => {
  await listen();
  const all = [ask(), ask({ branch: "c" })];
  const ids = await asked(2);
  all.push(ask());
  let isOver = false;
  const answered = Promise.all(all.map(({ outcome }) => outcome)).finally(() => {
    isOver = true;
  });
  for (const id of ids) await answer(id, { case: "branchPushed", value: { commit: id } });
  const [again] = await until(
    rows,
    (found) => isOver || (found.length === 1 && !ids.includes(found[0]?.id ?? "")),
  );
  if (again) await answer(again.id, { case: "branchPushed", value: { commit: again.id } });
  expect((await answered).map(({ isDone }) => isDone)).toEqual([true, true, true]);
  expect(await rows()).toEqual([]);
});

test("a look ends with the call that waits for it, and a push does not; nobody else tells its progress", async () => {
  await listen();
  const look = ask({ outlivesCaller: false });
  await asked();
  look.leave();
  expect(await look.outcome).toMatchObject({ message: "left" });
  await asked(0);
  const push = ask();
  const [id = ""] = await asked();
  push.leave();
  expect(await push.outcome).toMatchObject({ message: "left" });
  expect(await asked()).toEqual([id]);
  const other = await registeredRunner(made, caller, { name: "south" });
  await expect(tell(id, 1, other.caller)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  await answer(id, { case: "branchPushed", value: {} });
  // What comes late changes nothing.
  await tell(id, 1);
  expect(await ask().outcome).toMatchObject({ isDone: true });
});

test("a push waits for its look and for what is done no longer than for one question", async () => {
  await listen();
  const method = EnvironmentContract.method.pushEnvironmentBranch;
  const unused = () => Promise.reject(new Error("nothing is opened here"));
  const deps = { ...workDependencies(made), hosts: { opensPullRequests: unused, open: unused } };
  const req = create(PushRequestSchema, { environmentId, branch: "b" });
  const pushing = pushEnvironmentBranch(deps, req, contextOf(method, caller));
  const [look = ""] = await asked();
  made.clock.now += waitEnd(0, undefined) - 1;
  await listen();
  const found = { remote: REMOTE, commit: "c".repeat(40), defaultBranch: "main" };
  await answer(look, { case: "branchPushed", value: found });
  const [push] = await until(rows, ([row]) => row !== undefined && row.id !== look);
  await pass(1, push?.id);
  expect((await pushing).push).toMatchObject({ state: State.GOING_ON, commit: found.commit });
});
