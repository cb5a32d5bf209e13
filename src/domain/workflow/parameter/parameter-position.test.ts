import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "@jest/globals";
import { WorkflowStepSchema } from "#gen/service/v1/workflow_pb.js";
import {
  action,
  agent,
  agentContext,
  noProjects,
  pullRequest,
} from "../../../../test/harness/workflow-parts.ts";
import { renderWorkflow } from "./workflow-parameters.ts";

const validator = createValidator();

const render = (step: ReturnType<typeof agent>, parameters: Record<string, string>) =>
  renderWorkflow({ action: action(step), context: noProjects(), contextPath: "contextOverride" }, parameters);

const refusal = (path: string, message: string) =>
  expect.objectContaining({ message: expect.stringContaining(message), metadata: { field: path } });

describe("a field with its parameters in it keeps the limits that the contract gives it", () => {
  test.each([
    ["agent.prompt", agent, 1, 20_000],
    ["pullRequest.title", (title: string) => pullRequest({ title }), 1, 500],
    ["pullRequest.description", (description: string) => pullRequest({ description }), 0, 20_000],
    ["pullRequest.branch", (branch: string) => pullRequest({ branch }), 1, 255],
  ])("%s", (place, step, min, most) => {
    for (const characters of [0, 1, most - 1, most, most + 1]) {
      const value = "é".repeat(characters);
      const allowed = characters >= min && characters <= most;
      const { kind } = validator.validate(WorkflowStepSchema, step(value));
      expect({ characters, kind }).toEqual({ characters, kind: allowed ? "valid" : "invalid" });

      const rendering = () =>
        render(step("{{ .Parameters.a }}{{ .Parameters.b }}{{ .Parameters.c }}"), {
          a: value.slice(0, 8_192),
          b: value.slice(8_192, 16_384),
          c: value.slice(16_384),
        });
      if (allowed) expect(rendering().action?.steps).toEqual([step(value)]);
      else {
        const message = `has ${characters} characters with its parameters in it`;
        expect(rendering).toThrow(refusal(`action.steps[0].${place}`, message));
      }
    }
  });

  test("a trigger context's agent.prompt", () => {
    const context = agentContext(`${"é".repeat(15_000)}{{ .Parameters.p }}`);
    const rendering = (characters: number) =>
      renderWorkflow({ context, contextPath: "triggers[0].context" }, { p: "é".repeat(characters) });
    for (const characters of [4_999, 5_000]) {
      expect(rendering(characters).context).toEqual(agentContext("é".repeat(15_000 + characters)));
    }
    expect(() => rendering(5_001)).toThrow(
      refusal("triggers[0].context.agent.prompt", "has 20001 characters"),
    );
  });

  test("characters are counted as the contract counts them, not as UTF-16 does", () => {
    const step = pullRequest({ title: "{{ .Parameters.p }}" });
    expect(render(step, { p: "😀".repeat(500) }).action?.steps).toHaveLength(1);
  });
});

test.each(["a b", "-a", "a..b", "a~", "x\ny", "a.lock", "HEAD", "a/"])(
  "no value makes the branch %j",
  (value) => {
    expect(() => render(pullRequest({ branch: "{{ .Parameters.p }}" }), { p: value })).toThrow(
      refusal("action.steps[0].pullRequest.branch", "git allows no branch name that"),
    );
  },
);
