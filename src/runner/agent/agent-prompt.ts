import type {
  AgentControlInput,
  AgentControlInput_Goal,
  AgentInput,
  UserInputBlock,
  WakeEvent,
} from "#gen/service/v1/agent_pb.js";
import { partsOf, type StoreImage } from "./agent-input-encoding.ts";

/** Renders an input as the prompt for an agent of the plain text form. */
export async function promptText({ input }: AgentInput, storeImage: StoreImage): Promise<string> {
  switch (input.case) {
    case "userInput":
      return promptOfUser(input.value, storeImage);
    case "agentMessage":
      return input.value.payload;
    case "wakeEvent":
      return `Go on: ${describeEvent(input.value)}.`;
    case "controlInput":
      return promptOfControl(input.value);
    default:
      return "";
  }
}

async function promptOfUser(message: UserInputBlock, storeImage: StoreImage): Promise<string> {
  const parts = await partsOf(message, storeImage);
  return parts.map((part) => ("text" in part ? part.text : `Image: ${part.image.path}`)).join("\n\n");
}

function describeEvent({ interestId, payload }: WakeEvent): string {
  switch (payload.case) {
    case "timer":
      return `the timer ${interestId} has run out`;
    case "environment":
      return `the environment ${payload.value.environmentId} is ${payload.value.phase}`;
    case "subAgent":
      return `the sub-agent ${payload.value.executionId} has ended${describeFailure(payload.value.failureMessage)}`;
    case "devcontainerRebuild":
      return `the devcontainer of the environment ${payload.value.environmentId} is ${payload.value.phase}`;
    default:
      return `what was waited for as ${interestId} has happened`;
  }
}

const describeFailure = (message: string) => (message === "" ? "" : `, and failed: ${message}`);

function promptOfControl({ control }: AgentControlInput): string {
  if (control.case === "goal") return promptOfGoal(control.value);
  return "Sum up the conversation so far; it goes on from the summary.";
}

function promptOfGoal({ action }: AgentControlInput_Goal): string {
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
