import { isFieldSet } from "@bufbuild/protobuf";
import { type StartAgentRequest, StartAgentRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { type DomainError, permissionDenied, valueUnusable } from "../../error.ts";

/** An agent's request to start a sub-agent. */
export interface SubagentStart {
  /** Empty for the agent of the run that starts it. */
  readonly agentId: string;
  readonly name: string;
  readonly prompt: string;
}

/** The fields that a request may set; everything else a sub-agent inherits from the run that starts it. */
const FIELDS: ReadonlySet<string> = new Set(["agentId", "name", "userInput"]);

/**
 * Returns the sub-agent that an agent's request describes.
 * @throws DomainError VALUE_UNUSABLE for a request that sets other fields, or has no prompt
 */
export function subagentOf(req: StartAgentRequest): SubagentStart {
  const other = StartAgentRequestSchema.fields.find(
    (field) => !FIELDS.has(field.jsonName) && isFieldSet(req, field),
  );
  if (other) {
    const { jsonName } = other;
    throw valueUnusable(jsonName, `a sub-agent takes agentId, name and userInput, and no ${jsonName}`);
  }
  return { agentId: req.agentId, name: req.name, prompt: promptOf(req) };
}

/** Returns the error for an environment token that does not belong to an agent run. */
export function tokenOfNoAgent(): DomainError {
  return permissionDenied("start_agent", "only the token of an agent run can start sub-agents");
}

function promptOf({ userInput }: StartAgentRequest): string {
  const parts = userInput?.input.case
    ? [userInput.input]
    : (userInput?.inputs ?? []).map(({ input }) => input);
  const [part] = parts;
  if (parts.length !== 1 || part?.case !== "text" || userInput?.id !== "") {
    throw valueUnusable("userInput", "the first message of a sub-agent is one text, without an id");
  }
  return part.value.content;
}
