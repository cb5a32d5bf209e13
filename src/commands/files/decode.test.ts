import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { WorkflowSchema } from "#gen/service/v1/workflow_pb.js";
import { decode } from "./decode.ts";
import { pathText } from "./folder.ts";

function problemsOf(json: JsonObject): string[] {
  const problems: string[] = [];
  const message = decode(WorkflowSchema, json, (path, text) => problems.push(`${pathText(path)}: ${text}`));
  expect(message === undefined).toBe(problems.length > 0);
  return problems;
}

describe("a document", () => {
  test("becomes a message, whichever names of fields it uses", () => {
    const json = {
      metadata: { name: "a", annotations: { values: { team: "b" } } },
      spec: {
        agent_id: "c",
        triggers: [{ manual: {}, context: { agent: { prompt: "d" } } }],
        action: { limits: { maxParallel: 1, maxTotal: 1, perExecution: { maxTime: "60s" } }, steps: [] },
      },
    };
    const message = decode(WorkflowSchema, json, () => undefined);
    expect(message?.spec?.agentId).toBe("c");
    expect(message?.metadata?.annotations?.values).toEqual({ team: "b" });
    expect(message?.spec?.action?.limits?.perExecution?.maxTime?.seconds).toBe(60n);
  });

  test("has each problem at its field, without the value", () => {
    const secret = "hunter2";
    const problems = problemsOf({
      metadata: { nam: "a", name: 3 },
      spec: {
        disabled: secret,
        triggers: [{ time: { cronExpression: "* * * * *", overlapPolicy: secret }, manual: {}, context: [] }],
        action: { limits: { perExecution: { maxTime: secret } } },
        parameters: {},
      },
    });
    expect(problems).toEqual([
      "metadata.nam: is no field of Metadata",
      "metadata.name: takes a text",
      "spec.disabled: takes true or false",
      expect.stringMatching(/^spec\.triggers\[0\]\.time\.overlapPolicy: takes one of OVERLAP_POLICY_ALLOW, /),
      expect.stringMatching(/^spec\.triggers\[0\]\.manual: excludes another field/),
      "spec.triggers[0].context: takes an object",
      "spec.action.limits.perExecution.maxTime: takes a duration in seconds, such as 3600s",
      "spec.parameters: takes a list of objects",
    ]);
  });
});
