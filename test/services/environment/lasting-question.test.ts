import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import {
  EnvironmentQuestion_PushBranchSchema as PushBranchSchema,
} from "#gen/runner/v1/environment_question_pb.js";
import { EnvironmentWorkService as Contract } from "#gen/runner/v1/environment_work_service_pb.js";
import { EnvironmentPush_Stage as Stage } from "#gen/service/v1/environment_push_pb.js";
import { EnvironmentService as EnvironmentContract } from "#gen/service/v1/environment_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { LASTING_MS, SILENT_MS, STREAM_LIVES_MS } from "../../../src/domain/runner/runner-questions.ts";
import { removeAbandonedQuestions } from "../../../src/jobs/question-expiry.ts";
import { runsInEnvironment as runs } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { askerOf } from "../../../src/services/environment/environment-question.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { askLasting } from "../../../src/services/environment/lasting-question.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { contextOf, MINUTE_MS, openTestStore, operationsOf, type TestStore } from "../../harness/test-store.ts";
import { until } from "../../harness/until.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";

const INSTANCE = "the first";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let environmentId: string;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  await runner.beginInstance({ instanceId: INSTANCE });
  const { environment } = await servicesOf(made, caller).environments.createEnvironment({
    spec: { machine: { class: runner.classId } },
  });
  environmentId = environment?.id ?? "";
});
afterEach(() => made.close());

/** Asks once; the runner counts as listening. */
function ask(branch = "b", isLeft = true) {
  const leaving = new AbortController();
  const ctx = contextOf(EnvironmentContract.method.pushEnvironmentBranch, caller, leaving.signal);
  const deps = workDependencies(made);
  const value = create(PushBranchSchema, { branch });
  const outcome = listening()
    .then(() =>
      askLasting(deps, askerOf(deps, ctx), runner.runnerId, {
        environmentId,
        question: { case: "pushBranch", value },
        answer: "branchPushed",
        isSame: (asked) => asked.case === "pushBranch" && asked.value.branch === branch,
        isLeft,
      }),
    )
    .catch((error) => error);
  return { outcome, leave: () => leaving.abort(new Error("left")) };
}
async function listening(): Promise<void> {
  const [until, seen] = [made.clock.now + STREAM_LIVES_MS, made.clock.now];
  await made.store.write({ kind: "system" } as never, "test", ({ db }) =>
    builderOf(db)
      .updateTable("runner")
      .set({ requests_until: until, seen_at: seen } as never)
      .where("id", "=", runner.runnerId)
      .execute(),
  );
}
const answerWith = (questionId: string, answer: object, instanceId = INSTANCE) =>
  operationsOf(
    Contract,
    new EnvironmentWorkService({ ...workDependencies(made), runs }),
    runner.caller,
  ).answerRequest({ questionId, instanceId, answer } as never);
const tell = (questionId: string, percent: number, instanceId?: string) =>
  answerWith(
    questionId,
    { case: "progress", value: { stage: Stage.SENDING, percent } },
    instanceId,
  );
const rows = () =>
  builderOf(made.store.reader).selectFrom("environment_question").select(["id", "ends_at"]).execute();
const untilAsked = async () => (await until(rows, (found) => found.length === 1))[0]?.id ?? "";
const endsAt = async () => Number((await rows())[0]?.ends_at);

void MINUTE_MS;
void removeAbandonedQuestions;
void ErrorReason;
void LASTING_MS;
void SILENT_MS;
void tell;
void endsAt;
void untilAsked;
test("x", () => expect(ask).toBeDefined());
