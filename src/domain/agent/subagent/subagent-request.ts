import { isFieldSet } from "@bufbuild/protobuf";
import { type StartAgentRequest, StartAgentRequestSchema } from "#gen/service/v1/agent_service_pb.js";
import { type DomainError, permissionDenied, valueUnusable } from "../../error.ts";

/** Request of an agent for a sub-agent. */
export interface SubagentStart {
  /** Empty for the agent of the run that starts it. */
  readonly agentId: string;
  readonly name: string;
  readonly prompt: string;
}

/** Everything else a sub-agent has from the run that starts it. */
const FIELDS: ReadonlySet<string> = new Set(["agentId", "name", "userInput"]);

/**
 * Returns what the request of an agent says of a sub-agent.
 * @throws DomainError VALUE_UNUSABLE for a request that says more, or no prompt
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

/** Returns the error for the token of an environment that is none of an agent run. */
export function tokenOfNoAgent(): DomainError {
  return permissionDenied("start_agent", "the token is none of an agent run, which alone starts sub-agents");
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
