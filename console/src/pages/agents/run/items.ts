import type { AgentInput, AgentOutputBlock } from "#gen/service/v1/agent_pb.js";
import { AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";

/** One thing of a conversation: what somebody said to the agent, a block, or steps that stand behind one line. */
export type Item =
  | { readonly kind: "input"; readonly key: string; readonly input: AgentInput }
  | { readonly kind: "block"; readonly key: string; readonly block: AgentOutputBlock }
  | { readonly kind: "steps"; readonly key: string; readonly blocks: readonly AgentOutputBlock[] };

/** Blocks that follow one another and are shown as one line from this number on. */
const FOLDED_FROM = 4;

const isStep = ({ block }: AgentOutputBlock): boolean =>
  ["toolCall", "toolRequest", "fileChange", "thought"].includes(block.case ?? "");

/** Returns a conversation in its order: each input where its turn begins, then the blocks of the turn. */
export function itemsOf(inputs: readonly AgentInput[], blocks: readonly AgentOutputBlock[]): Item[] {
  const told = inputs.filter(
    ({ receipt, input }) =>
      (receipt === Receipt.SEEN || receipt === Receipt.DELIVERED) && input.case !== "approval",
  );
  const items: Item[] = [];
  const left = new Map(told.map((input) => [input.id, input]));
  const say = (input: AgentInput) => {
    left.delete(input.id);
    items.push({ kind: "input", key: `input-${input.id}`, input });
  };
  let turn = "";
  let steps: AgentOutputBlock[] = [];
  const endSteps = () => {
    const [first] = steps;
    if (first && steps.length >= FOLDED_FROM)
      items.push({ kind: "steps", key: `steps-${first.sequence}`, blocks: steps });
    else for (const block of steps) items.push({ kind: "block", key: `block-${block.sequence}`, block });
    steps = [];
  };
  for (const block of blocks) {
    if (block.block.case === "plan" || block.block.case === "usage") continue;
    if (block.inputId !== turn) {
      endSteps();
      turn = block.inputId;
      const begins = left.get(turn);
      // Everything that was said before it, too: a message into a turn begins none.
      if (begins) {
        for (const each of told) {
          if (each === begins) break;
          if (left.has(each.id)) say(each);
        }
        say(begins);
      }
    }
    if (isStep(block)) {
      steps.push(block);
      continue;
    }
    endSteps();
    items.push({ kind: "block", key: `block-${block.sequence}`, block });
  }
  endSteps();
  for (const input of left.values()) say(input);
  return items;
}
