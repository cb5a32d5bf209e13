import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ActionWorkSchema } from "#gen/runner/v1/work_pb.js";
import {
  ReportProgressRequest_StepProgress_State,
  ReportProgressRequestSchema,
} from "#gen/runner/v1/work_service_pb.js";
import { WorkflowStep_ReportSchema } from "#gen/service/v1/workflow_pb.js";
import { createCheck } from "../../src/rpc/check.ts";
import { commandEnvironment } from "../../src/runner/process/command.ts";
import type { Assignment, RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { collectOutputs } from "../../src/runner/steps/action-step.ts";
import { StepLog } from "../../src/runner/steps/step-log.ts";
import { workspaceAt } from "../../src/runner/steps/workspace.ts";
import { leasedAssignment, realTools } from "../harness/assignment.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

let tools: RunnerTools;
let assignment: Assignment;
beforeAll(async () => {
  tools = await realTools();
  assignment = leasedAssignment(tools, {});
});
afterAll(async () => {
  assignment.lease.interrupt("lost");
  await stopAll();
});

/** What a report of one output gives whose command prints so many bytes. */
function collected(bytes: number) {
  const command = `head -c ${bytes} /dev/zero | tr '\\0' a`;
  const folder = temporaryFolder();
  return collectOutputs(
    {
      assignment,
      action: create(ActionWorkSchema),
      stepIndex: 0,
      workspace: workspaceAt(folder, "01900000-0000-7000-8000-00000000000c"),
      checkouts: [],
      folder,
      environment: commandEnvironment(tools.programs, folder),
      runCommand: tools.programs.run,
      log: new StepLog(async () => undefined),
      signal: assignment.lease.signal,
    },
    create(WorkflowStep_ReportSchema, {
      outputs: [{ key: "word", extraction: { case: "command", value: command } }],
    }),
  );
}

test("an output is collected as long as the contract takes it", async () => {
  const check = createCheck();
  for (const bytes of [16_385, 16_386]) {
    const { outputs = {} } = await collected(bytes);
    expect(outputs.word).toHaveLength(bytes);
    const report = create(ReportProgressRequestSchema, {
      leaseId: "01900000-0000-7000-8000-000000000001",
      fence: 1n,
      steps: [
        { stepIndex: 0, state: ReportProgressRequest_StepProgress_State.DONE, outputs: { ...outputs } },
      ],
    });
    expect(() => check(ReportProgressRequestSchema, report)).not.toThrow();
  }
  await expect(collected(16_387)).rejects.toMatchObject({ reason: "output_too_long" });
});
