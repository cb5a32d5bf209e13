import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  type AnswerRequestRequest,
  type EnvironmentQuestion,
  AnswerRequestRequest_RemoteReadSchema as RemoteReadSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentWorkService as WorkContract } from "#gen/runner/v1/environment_work_service_pb.js";
import { FailureSchema } from "#gen/runner/v1/work_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import { RunnerService as Contract } from "#gen/service/v1/runner_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { MAX_QUESTIONS_OF_CALLER } from "../../../src/domain/runner/runner-questions.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { RunnerService } from "../../../src/services/access/runner-service.ts";
import { runsInEnvironment as runs } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { findStoredRunner } from "../../../src/store/runner/runner-life.ts";
import { contextOf, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { until } from "../../harness/until.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

const INSTANCE = "the first";
const HOST = "git.example.org";
const ADDRESS = `https://${HOST}/o/r/tree/main`;
const TOKEN = "token-of-the-caller";
/** Time that a runner has (contract, CheckRepositoryAccess), in milliseconds. */
const READ_MS = 30_000;

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let leave: () => Promise<void>;
let nextQuestion: () => Promise<EnvironmentQuestion | undefined>;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  await runner.beginInstance({ instanceId: INSTANCE });
  await watch();
});
afterEach(async () => {
  await leave();
  await made.close();
});

const service = () => new EnvironmentWorkService({ ...workDependencies(made), runs });

/** Opens the runner's stream of questions. */
async function watch(): Promise<void> {
  const leaving = new AbortController();
  const method = WorkContract.method.watchRequests;
  const ctx = contextOf(method, runner.caller, leaving.signal);
  const stream = service().watchRequests(create(method.input, { instanceId: INSTANCE }), ctx);
  const questions: EnvironmentQuestion[] = [];
  const reading = (async () => {
    for await (const { question } of stream) if (question) questions.push(question);
  })().catch(() => undefined);
  await until(isOpen, Boolean);
  nextQuestion = async () => {
    await until(
      async () => questions.length,
      (count) => count > 0,
    );
    return questions.shift();
  };
  leave = async () => {
    leaving.abort();
    await reading;
  };
}

async function isOpen(): Promise<boolean> {
  const row = await findStoredRunner(made.store.reader, caller, runner.runnerId);
  return (row?.questionsUntil ?? 0) > made.clock.now;
}

/** Asks whether a repository can be read. */
function check(by = caller, runnerId = runner.runnerId, timeoutMs?: number) {
  const leaving = new AbortController();
  const method = Contract.method.checkRepositoryAccess;
  const ctx = contextOf(method, by, leaving.signal, timeoutMs);
  const request = create(method.input, { runnerId, repositoryUrl: ADDRESS });
  const outcome = new RunnerService(workDependencies(made))
    .checkRepositoryAccess(request, ctx)
    .catch((error: unknown) => error);
  return { outcome, leave: () => leaving.abort(new Error("left")) };
}
const work = (by = runner.caller) => operationsOf(WorkContract, service(), by);
const answer = (questionId: string, given: AnswerRequestRequest["answer"]) =>
  work().answerRequest({ questionId, instanceId: INSTANCE, answer: given });
const unreachable = (cause: string) => ({ reason: ErrorReason.RUNNER_UNREACHABLE, metadata: { cause } });

test("the question names the repository and the caller, and no environment", async () => {
  const { outcome } = check();
  const question = await nextQuestion();
  expect(question).toMatchObject({
    environmentId: "",
    question: {
      case: "readRemote",
      value: { remote: `https://${HOST}/o/r`, credentialOf: { id: caller.subject.id }, pullRequest: 0 },
    },
  });
  await answer(question?.id ?? "", { case: "remoteRead", value: create(RemoteReadSchema) });
  expect(await outcome).toMatchObject({ hasAccess: true, errorMessage: "" });
});

test("a runner that does not answer within 30 seconds is unreachable", async () => {
  const { outcome } = check();
  const question = await nextQuestion();
  expect(Number(question?.expiresAt?.seconds) * 1_000 + (question?.expiresAt?.nanos ?? 0) / 1e6).toBe(
    made.clock.now + READ_MS,
  );
  made.clock.now += READ_MS;
  await made.store.write({ id: "test", principal: 0 }, "test", async (tx) => tx.touch(question?.id ?? ""));
  expect(await outcome).toMatchObject(unreachable("no_answer"));
});

test.each(["environment_absent", "question_unknown"])(
  "a runner of an earlier release, which says %s, is unreachable",
  async (reason) => {
    const { outcome } = check();
    const question = await nextQuestion();
    await answer(question?.id ?? "", {
      case: "failure",
      value: create(FailureSchema, { reason, message: "it says" }),
    });
    expect(await outcome).toMatchObject(unreachable("question_unknown"));
  },
);

test("a runner that failed, or got nothing of the server, says nothing of the repository", async () => {
  const failed = check();
  const fault = create(FailureSchema, { reason: "runner_fault", message: "it says" });
  await answer((await nextQuestion())?.id ?? "", { case: "failure", value: fault });
  expect(await failed.outcome).toMatchObject(unreachable("answer_failed"));
  for (const reason of ["refused_by_service", "runner_fault", "command_not_started"]) {
    const { outcome } = check();
    const value = create(RemoteReadSchema, { failure: { reason, message: "it says" } });
    await answer((await nextQuestion())?.id ?? "", { case: "remoteRead", value });
    expect(await outcome).toMatchObject(unreachable("answer_failed"));
  }
});

test("a caller has as many questions open as it may, and no more", async () => {
  const asked = Array.from({ length: MAX_QUESTIONS_OF_CALLER - 1 }, () => check());
  for (const _ of asked) await nextQuestion();
  const last = check();
  const left = await nextQuestion();
  const refused = await check().outcome;
  expect(refused).toMatchObject({ reason: ErrorReason.TOO_MANY_QUESTIONS, metadata: { scope: "caller" } });
  // The runner goes on with the question of one who has hung up.
  last.leave();
  expect(await last.outcome).toMatchObject({ message: "left" });
  expect(await check().outcome).toMatchObject({ reason: ErrorReason.TOO_MANY_QUESTIONS });
  await answer(left?.id ?? "", { case: "remoteRead", value: create(RemoteReadSchema) });
  const again = check();
  expect(await nextQuestion()).toBeDefined();
  for (const { leave, outcome } of [...asked, again]) {
    leave();
    await outcome;
  }
});

test("the time of a caller who cannot wait does not shorten that of the question", async () => {
  const { outcome } = check(caller, runner.runnerId, 1_000);
  const question = await nextQuestion();
  expect(question?.expiresAt && timestampMs(question.expiresAt)).toBe(made.clock.now + READ_MS);
  expect(await outcome).toMatchObject({ code: Code.DeadlineExceeded });
});

test("a local runner is not asked where none may be used", async () => {
  const local = await registeredRunner(made, caller, { name: "mine", local: true });
  expect(await check(caller, local.runnerId).outcome).toMatchObject(unreachable("runner_silent"));
  const { organizationId } = caller;
  await operationsOf(
    OrganizationContract,
    new OrganizationService(made.deps),
    caller,
  ).updateOrganizationPolicies({ organizationId, allowLocalRunners: false });
  expect(await check(caller, local.runnerId).outcome).toMatchObject({ reason: ErrorReason.POLICY_DENIED });
});

describe("the credential of a question", () => {
  beforeEach(async () => {
    const { configuration } = servicesOf(made, caller);
    const { runnerId } = runner;
    for (const host of [HOST, "other.example.org"]) {
      await configuration.createHostAuthenticationToken({ runnerId, host, token: TOKEN });
    }
  });

  test("is the caller's, for the host of the remote, until it is answered", async () => {
    const { outcome } = check();
    const questionId = (await nextQuestion())?.id ?? "";
    expect(await work().getQuestionCredential({ questionId, host: HOST })).toMatchObject({ token: TOKEN });
    await expect(
      work().getQuestionCredential({ questionId, host: "other.example.org" }),
    ).rejects.toMatchObject({ reason: ErrorReason.VALUE_UNUSABLE });
    await answer(questionId, { case: "remoteRead", value: create(RemoteReadSchema) });
    await outcome;
    await expect(work().getQuestionCredential({ questionId, host: HOST })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });

  test("is no other runner's", async () => {
    const other = await registeredRunner(made, caller, { name: "south" });
    const asked = check();
    const questionId = (await nextQuestion())?.id ?? "";
    await expect(work(other.caller).getQuestionCredential({ questionId, host: HOST })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
    asked.leave();
    await asked.outcome;
  });
});
