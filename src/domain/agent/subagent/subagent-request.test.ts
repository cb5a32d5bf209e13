import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { AgentMode } from "#gen/service/v1/agent_pb.js";
import { StartAgentRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { DomainError } from "../../error.ts";
import { subagentOf } from "./subagent-request.ts";

type Request = MessageInitShape<typeof StartAgentRequestSchema>;

const text = (content: string) => ({ input: { case: "text" as const, value: { content } } });
const image = { input: { case: "image" as const, value: { data: new Uint8Array(1) } } };
const asked = (req: Request) => subagentOf(create(StartAgentRequestSchema, req));

/** The field that is refused. */
function refused(req: Request): string | undefined {
  try {
    asked(req);
    return undefined;
  } catch (error) {
    return error instanceof DomainError ? error.metadata.field : String(error);
  }
}

describe("what an agent says of a sub-agent", () => {
  test("is which agent, its name and one text", () => {
    const req = { agentId: "a", name: "Child", userInput: { inputs: [text("look")] } };
    expect(asked(req)).toEqual({ agentId: "a", name: "Child", prompt: "look" });
    expect(asked({ userInput: text("look") })).toEqual({ agentId: "", name: "", prompt: "look" });
  });

  test.each<[string, Request]>([
    ["mode", { mode: AgentMode.PLANNING }],
    ["runnerId", { runnerId: "r" }],
    ["codeContext", { codeContext: { context: { case: "environmentId", value: "e" } } }],
    ["resumeFrom", { resumeFrom: "x" }],
    ["annotations", { annotations: { "example.org/a": "b" } }],
    ["holdAfterLostTurn", { holdAfterLostTurn: false }],
  ])("is nothing of %s", (field, more) => {
    expect(refused({ ...more, userInput: text("look") } as Request)).toBe(field);
  });

  test.each<[string, Request]>([
    ["no message", {}],
    ["two texts", { userInput: { inputs: [text("a"), text("b")] } }],
    ["an image", { userInput: { inputs: [image] } }],
    ["a text with an id", { userInput: { id: "m", inputs: [text("a")] } }],
  ])("is no prompt with %s", (_, req) => {
    expect(refused(req)).toBe("userInput");
  });
});
