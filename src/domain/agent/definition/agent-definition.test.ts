import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { AgentDefinitionSchema, AgentKind, AgentSchema } from "#gen/service/v1/agent_pb.js";
import { UpdateAgentRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { programOf, redefinedAgent } from "./agent-definition.ts";

const defined = (variables: Record<string, string>, kind = AgentKind.ACP) =>
  create(AgentDefinitionSchema, { kind, command: "coder", arguments: ["--acp", ""], variables });

describe("the program of a defined agent", () => {
  test.each([
    [AgentKind.ACP, AgentForm.ACP],
    [AgentKind.TEXT, AgentForm.TEXT],
    [AgentKind.JSON_LINES, AgentForm.JSON_LINES],
  ])("has its form and its words: %s", (kind, form) => {
    expect(programOf(defined({}, kind))).toEqual({ form, command: ["coder", "--acp", ""] });
  });

  test.each(["TONE", "MAX_TOKENS", "KEYBOARD", "SECRETARY", "TOKEN_LIMIT"])(
    "may have the variable %s",
    (name) => {
      expect(() => programOf(defined({ [name]: "1" }))).not.toThrow();
    },
  );

  test.each(["HOME", "GIT_AUTHOR_NAME", "CHARTROOM_X", "TOKEN", "API_KEY", "db_password", "AWS_CREDENTIALS"])(
    "may not have the variable %s",
    (name) => {
      expect(() => programOf(defined({ [name]: "1" }))).toThrow(
        expect.objectContaining({ reason: ErrorReason.VALUE_UNUSABLE }),
      );
    },
  );
});

test("a change leaves what it does not name", () => {
  const before = create(AgentSchema, { id: "1", name: "Planner", description: "plans", takesSettings: true });
  const change = create(UpdateAgentRequestSchema, { agentId: "1", description: "", definition: defined({}) });
  expect(redefinedAgent(before, change)).toMatchObject({
    name: "Planner",
    description: "",
    takesSettings: true,
    definition: { command: "coder" },
  });
});
