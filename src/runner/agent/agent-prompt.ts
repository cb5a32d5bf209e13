import type {
  AgentControlInput,
  AgentControlInput_Goal,
  AgentInput,
  UserInputBlock,
  WakeEvent,
} from "#gen/service/v1/agent_pb.js";
import { type KeepImage, partsOf } from "./agent-input-encoding.ts";

/** An input in the words in which an agent of the plain text form gets it. */
export async function promptText({ input }: AgentInput, keepImage: KeepImage): Promise<string> {
  switch (input.case) {
    case "userInput":
      return promptOfUser(input.value, keepImage);
    case "agentMessage":
      return input.value.payload;
    case "wakeEvent":
      return `Go on: ${happened(input.value)}.`;
    case "controlInput":
      return ordered(input.value);
    default:
      return "";
  }
}

async function promptOfUser(message: UserInputBlock, keepImage: KeepImage): Promise<string> {
  const parts = await partsOf(message, keepImage);
  return parts.map((part) => ("text" in part ? part.text : `Image: ${part.image.path}`)).join("\n\n");
}

function happened({ interestId, payload }: WakeEvent): string {
  switch (payload.case) {
    case "timer":
      return `the timer ${interestId} has run out`;
    case "environment":
      return `the environment ${payload.value.environmentId} is ${payload.value.phase}`;
    case "subAgent":
      return `the sub-agent ${payload.value.executionId} has ended${failed(payload.value.failureMessage)}`;
    case "devcontainerRebuild":
      return `the devcontainer of the environment ${payload.value.environmentId} is ${payload.value.phase}`;
    default:
      return `what was waited for as ${interestId} has happened`;
  }
}

const failed = (message: string) => (message === "" ? "" : `, and failed: ${message}`);

function ordered({ control }: AgentControlInput): string {
  if (control.case === "goal") return orderedGoal(control.value);
  return "Sum up the conversation so far; it goes on from the summary.";
}

function orderedGoal({ action }: AgentControlInput_Goal): string {
  switch (action.case) {
    case "set":
      return `Your goal from now on: ${action.value.objective}`;
    case "pause":
      return "Stop working towards the goal for now.";
    case "resume":
      return "Go on working towards the goal.";
    case "complete":
      return "The goal is reached.";
    default:
      return "There is no goal any more.";
  }
}
