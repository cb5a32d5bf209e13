import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { FailureSchema } from "#gen/runner/v1/work_service_pb.js";
import { WorkflowErrorCode as Code } from "#gen/service/v1/workflow_error_pb.js";
import { WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import { reportedError } from "./reported-failure.ts";

const failure = create(FailureSchema, { reason: "command_failed", message: "ended with 1", retriable: true });
const step = (kind: "task" | "agent" | "pullRequest" | "report") =>
  create(WorkflowStepSchema, { step: { case: kind, value: {} } as never });

describe("a failure that a runner reports", () => {
  test.each([
    [undefined, Code.ENVIRONMENT_ERROR],
    [step("task"), Code.ENVIRONMENT_ERROR],
    [step("report"), Code.ENVIRONMENT_ERROR],
    [step("agent"), Code.AGENT_ERROR],
    [step("pullRequest"), Code.UNSPECIFIED],
  ])("is reported with the part of the system in which the step does its work: %#", (of, code) => {
    expect(reportedError(failure, of)).toMatchObject({
      code,
      reason: "command_failed",
      message: "ended with 1",
      retry: { retriable: true },
    });
  });

  test("has a reason and a message whatever the runner leaves out", () => {
    const bare = { reason: "step_failed", message: expect.stringMatching(/./) };
    expect(reportedError(undefined)).toMatchObject(bare);
    expect(reportedError(create(FailureSchema), step("agent"))).toMatchObject({
      ...bare,
      code: Code.AGENT_ERROR,
    });
    expect(reportedError(create(FailureSchema, { message: "no disk" }))).toMatchObject({
      reason: "step_failed",
      message: "no disk",
    });
  });
});
