import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { EnvironmentQuestion_RefreshChangesSchema } from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentWorkService as Contract } from "#gen/runner/v1/environment_work_service_pb.js";
import { EnvironmentService as EnvironmentContract } from "#gen/service/v1/environment_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import {
  MAX_QUESTIONS_OF_CALLER,
  MAX_QUESTIONS_OF_RUNNER,
  STREAM_LIVES_MS,
} from "../../../src/domain/runner/runner-questions.ts";
import { removeAbandonedQuestions } from "../../../src/jobs/question-expiry.ts";
import { runsInEnvironment as runs } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { askerOf, askRunner } from "../../../src/services/environment/environment-question.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
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
import { servicesOf } from "../services.ts";

const INSTANCE = "the first";

let made: TestStore;
let caller: Caller;
let stranger: Caller;
let runner: RegisteredRunner;
let other: RegisteredRunner;
let environmentId: string;
beforeAll(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  stranger = await made.createOrganization("island");
  runner = await registeredRunner(made, caller);
  other = await registeredRunner(made, caller, { name: "south" });
  await runner.beginInstance({ instanceId: INSTANCE });
  const { environment } = await servicesOf(made, caller).environments.createEnvironment({
    spec: { machine: { class: runner.classId } },
  });
  environmentId = environment?.id ?? "";
});
afterAll(() => made.close());

const serverWith = () => new EnvironmentWorkService({ ...workDependencies(made), runs });
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((leave) => leave()));
});

/** Opens a stream of questions. */
function watch(server = serverWith(), by = runner.caller, instanceId = INSTANCE) {
  const leaving = new AbortController();
  const method = Contract.method.watchRequests;
  const ctx = contextOf(method, by, leaving.signal);
  const stream = server.watchRequests(create(method.input, { instanceId }), ctx);
  const leave = async () => {
    leaving.abort();
    await stream.return(undefined).catch(() => undefined);
  };
  open.push(leave);
  return {
    next: async () => (await stream.next()).value?.question ?? undefined,
    leave,
  };
}
const answerAs = (by: Caller, questionId: string, instanceId = INSTANCE) =>
  operationsOf(Contract, serverWith(), by).answerRequest({
    questionId,
    instanceId,
    answer: { case: "changesRefreshed", value: {} },
  });

/** Asks, and waits for as long as the test's clock does not move. */
function ask(by = caller, waitMs = MINUTE_MS / 2) {
  const leaving = new AbortController();
  const ctx = contextOf(EnvironmentContract.method.getEnvironmentChanges, by, leaving.signal);
  const question = {
    case: "refreshChanges",
    value: create(EnvironmentQuestion_RefreshChangesSchema),
  } as const;
  const asked = { environmentId, question, answer: "changesRefreshed", waitMs } as const;
  const deps = workDependencies(made);
  const outcome = askRunner(deps, askerOf(deps, ctx), asked).then(
    () => "answered",
    (error) => error,
  );
  return { outcome, leave: () => leaving.abort(new Error("left")) };
}
const rows = () =>
  builderOf(made.store.reader)
    .selectFrom("environment_question")
    .select(["id", "runner_id"])
    .orderBy("id")
    .execute();
const untilAsked = (count: number) => until(rows, (found) => found.length === count);
const unreachable = (cause: string) => ({ reason: ErrorReason.ENVIRONMENT_UNREACHABLE, metadata: { cause } });
/** Opens a stream, and returns its first question once it counts as open. */
async function listen() {
  const stream = watch();
  const next = stream.next();
  next.catch(() => undefined);
  await until(isOpen, Boolean);
  return { ...stream, first: () => next };
}

describe("a question", () => {
  test("reaches the runner's stream and its answer the asker, and is kept no longer", async () => {
    const stream = await listen();
    const { outcome } = ask();
    const question = await stream.first();
    expect(question).toMatchObject({ environmentId, question: { case: "refreshChanges" } });
    await answerAs(runner.caller, question?.id ?? "");
    expect(await outcome).toBe("answered");
    expect(await rows()).toEqual([]);
    await expect(answerAs(runner.caller, question?.id ?? "")).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });

  test("comes again with a newer stream, at whatever server, which ends the one before", async () => {
    const first = await listen();
    const { outcome } = ask();
    const before = await first.first();
    const second = watch();
    const again = await second.next();
    expect(again?.id).toBe(before?.id);
    expect(await first.next()).toBeUndefined();
    // The end of the older one does not make the newer one count as closed.
    expect(await isOpen()).toBe(true);
    await answerAs(runner.caller, again?.id ?? "");
    expect(await outcome).toBe("answered");
  });

  test("is answered by the runner that was asked alone, in its present instance", async () => {
    const stream = await listen();
    const { outcome } = ask();
    const id = (await stream.first())?.id ?? "";
    for (const by of [other.caller, (await registeredRunner(made, stranger)).caller]) {
      await expect(answerAs(by, id, "")).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    }
    await expect(answerAs(runner.caller, id, "another")).rejects.toMatchObject({
      reason: ErrorReason.IN_USE,
    });
    await answerAs(runner.caller, id);
    expect(await outcome).toBe("answered");
  });

  test("is refused at once while the runner does not listen", async () => {
    expect(await ask().outcome).toMatchObject(unreachable("runner_silent"));
    await (await listen()).leave();
    expect(await ask().outcome).toMatchObject(unreachable("runner_silent"));
  });

  test("is refused once the stream's server has not been heard of for too long", async () => {
    await listen();
    const { now } = made.clock;
    made.clock.now = now + STREAM_LIVES_MS;
    try {
      expect(await ask().outcome).toMatchObject(unreachable("runner_silent"));
    } finally {
      made.clock.now = now;
    }
  });

  test("ends unanswered when its time is over, and when its asker leaves", async () => {
    await listen();
    const slow = ask(caller, 5);
    await untilAsked(1);
    made.clock.now += 5;
    expect(await slow.outcome).toMatchObject(unreachable("no_answer"));
    const left = ask();
    await untilAsked(1);
    left.leave();
    expect(await left.outcome).toMatchObject({ message: "left" });
    await untilAsked(0);
  });

  test("may be one of as many of a caller, and of a runner, as are allowed", async () => {
    await listen();
    const asked = [];
    const askers = MAX_QUESTIONS_OF_RUNNER / MAX_QUESTIONS_OF_CALLER;
    for (let asker = 0; asker < askers; asker++) {
      const by = asker === 0 ? caller : { ...caller, subject: { ...caller.subject, id: `asker ${asker}` } };
      for (let count = 0; count < MAX_QUESTIONS_OF_CALLER; count++) asked.push(ask(by));
      await untilAsked(asked.length);
      const metadata = { scope: "caller", limit: String(MAX_QUESTIONS_OF_CALLER) };
      expect(await ask(by).outcome).toMatchObject({ reason: ErrorReason.TOO_MANY_QUESTIONS, metadata });
    }
    const late = { ...caller, subject: { ...caller.subject, id: "late" } };
    const metadata = { scope: "runner", limit: String(MAX_QUESTIONS_OF_RUNNER) };
    expect(await ask(late).outcome).toMatchObject({ reason: ErrorReason.TOO_MANY_QUESTIONS, metadata });
    asked.pop()?.leave();
    await untilAsked(asked.length);
    const fits = ask(late);
    await untilAsked(asked.length + 1);
    for (const { leave } of [...asked, fits]) leave();
    await untilAsked(0);
  });

  test("whose server was killed is removed later, and no other", async () => {
    await listen();
    const waiting = ask();
    const [row] = await untilAsked(1);
    const copy = {
      id: made.newId(),
      organization_id: caller.organizationId,
      runner_id: row?.runner_id ?? "",
    };
    await made.store.write({ id: "test", principal: 0 }, "test", async ({ db }) => {
      const rest = { environment_id: environmentId, asker_id: "gone", body: "{}", answer: null };
      await builderOf(db)
        .insertInto("environment_question")
        .values({ ...copy, ...rest, ends_at: made.clock.now - MINUTE_MS })
        .execute();
    });
    expect(await removeAbandonedQuestions(made.store, made.clock.now)).toBe(1);
    expect((await rows()).map(({ id }) => id)).toEqual([row?.id]);
    waiting.leave();
    await untilAsked(0);
  });
});

async function isOpen(): Promise<boolean> {
  const row = await builderOf(made.store.reader)
    .selectFrom("runner")
    .select("requests_until")
    .where("id", "=", runner.runnerId)
    .executeTakeFirst();
  return (row?.requests_until ?? 0) > made.clock.now;
}
