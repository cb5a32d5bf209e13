import { type DescEnum, toJson } from "@bufbuild/protobuf";
import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import {
  type AgentControlInput,
  AgentGoalStatusSchema,
  type AgentInput,
  AgentMessage_RoleSchema,
  AgentMessage_TypeSchema,
  AgentMode,
  AgentModeSchema,
  ExtAgentReasoningEffortSchema,
  ExtAgentServiceTierSchema,
  type ExtAgentSettings,
  type TurnOptions,
  type UserInputBlock,
  WakeEventSchema,
} from "#gen/service/v1/agent_pb.js";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { ApprovalAnswer, ApprovalRequest } from "./approval-requests.ts";

/** One line of input for an agent that speaks JSON lines. */
export type InputLine = Readonly<Record<string, unknown>> & { readonly type: string };

/** A part of a message in the form that the agent receives. */
export type InputPart =
  | { readonly text: string }
  | { readonly image: { readonly mimeType: string; readonly path: string } };

export interface InputSettings {
  readonly model?: number;
  readonly reasoningEffort?: string;
  readonly serviceTier?: string;
}

/** Stores an image where the agent can read it and returns its path. */
export type StoreImage = (image: { readonly data: Uint8Array; readonly mimeType: string }) => Promise<string>;

/** Encodes an input as a line, as docs/agents.md defines it. */
export async function inputLine(
  { input, steer, turnOptions, extAgentSettings }: StreamInputsResponse,
  storeImage: StoreImage,
): Promise<InputLine> {
  if (!input) throw new WorkFailure("agent_input_unknown", "the service handed out no input");
  return {
    ...(await contentOf(input, storeImage)),
    id: input.id,
    ...(steer && { steer }),
    ...(turnOptions && { modes: modesOf(turnOptions) }),
    ...(extAgentSettings && { settings: settingsOf(extAgentSettings) }),
  };
}

/** Encodes the decision on a tool call, or the answer to a question, that the agent requested. */
export function approvalAnswerLine(
  { toolCallId: id = "", request }: ApprovalRequest,
  { allowed, optionId, answerJson, reason }: ApprovalAnswer,
): InputLine {
  const why = reason === "" ? {} : { reason };
  if (request?.case === "question") {
    return {
      type: "answer",
      id,
      answered: allowed,
      ...(allowed && { answer: JSON.parse(answerJson) }),
      ...why,
    };
  }
  return { type: "permission", id, allowed, ...(optionId !== "" && { option: optionId }), ...why };
}

/** Returns the parts of a message in order. A message in a deprecated form has one part. */
export async function partsOf(
  { input, inputs }: UserInputBlock,
  storeImage: StoreImage,
): Promise<readonly InputPart[]> {
  const parts = input.case === undefined ? inputs.map((part) => part.input) : [input];
  const result: InputPart[] = [];
  for (const part of parts) {
    if (part.case === "text") result.push({ text: part.value.content });
    if (part.case === "image") {
      const { data, mimeType } = part.value;
      result.push({ image: { mimeType, path: await storeImage({ data, mimeType }) } });
    }
  }
  return result;
}

/** Returns the settings that are set: the model as its number, the others as short names. */
export function settingsOf({ model, reasoningEffort, serviceTier }: ExtAgentSettings): InputSettings {
  return {
    ...(model !== 0 && { model }),
    ...(reasoningEffort !== 0 && {
      reasoningEffort: shortName(ExtAgentReasoningEffortSchema, reasoningEffort),
    }),
    ...(serviceTier !== 0 && { serviceTier: shortName(ExtAgentServiceTierSchema, serviceTier) }),
  };
}

/** Returns the names of the modes requested for a turn. */
export function modesOf({ modes }: TurnOptions): string[] {
  return modes.filter((mode) => mode !== AgentMode.UNSPECIFIED).map(modeName);
}

/** Returns the name of a mode, such as `planning`. */
export const modeName = (mode: number) => shortName(AgentModeSchema, mode);

/** Returns an enum member's name in lower case, without the enum's prefix. */
function shortName(members: DescEnum, number: number): string {
  const name = members.value[number]?.localName;
  return name?.toLowerCase() ?? "unspecified";
}

async function contentOf({ input }: AgentInput, storeImage: StoreImage): Promise<InputLine> {
  switch (input.case) {
    case "userInput":
      return { type: "user_input", inputs: await partsOf(input.value, storeImage) };
    case "agentMessage": {
      const { type, role, senderExecutionId, payload } = input.value;
      return {
        type: "agent_message",
        kind: shortName(AgentMessage_TypeSchema, type),
        role: shortName(AgentMessage_RoleSchema, role),
        from: senderExecutionId,
        payload,
      };
    }
    case "wakeEvent":
      return { type: "wake", ...Object(toJson(WakeEventSchema, input.value)) };
    case "controlInput":
      return { type: "control", ...controlFieldsOf(input.value) };
    default:
      throw new WorkFailure(
        "agent_input_unknown",
        "the service handed out an input that this runner does not know",
      );
  }
}

function controlFieldsOf({ control }: AgentControlInput): Readonly<Record<string, string>> {
  if (control.case !== "goal") return { control: control.case ?? "unknown" };
  const { action } = control.value;
  if (action.case !== "set") return { control: "goal", action: action.case ?? "unknown" };
  const { objective, status } = action.value;
  return {
    control: "goal",
    action: "set",
    objective,
    ...(status !== undefined && { status: shortName(AgentGoalStatusSchema, status) }),
  };
}
