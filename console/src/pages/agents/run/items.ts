import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AgentInput, AgentOutputBlock } from "#gen/service/v1/agent_pb.js";
import { AgentInputReceipt as Receipt } from "#gen/service/v1/agent_pb.js";
import { type Approval, ApprovalState } from "#gen/service/v1/approval_pb.js";

/** What an agent did or asked permission for. */
export type Step =
  | { readonly kind: "block"; readonly key: string; readonly block: AgentOutputBlock }
  | { readonly kind: "approval"; readonly key: string; readonly approval: Approval };

/** One item of a conversation: a message to the agent, a step, or several steps folded into one line. */
export type Item =
  | { readonly kind: "input"; readonly key: string; readonly input: AgentInput }
  | Step
  | { readonly kind: "steps"; readonly key: string; readonly steps: readonly Step[] };

/** Minimum number of consecutive steps that are folded into one line. */
const FOLDED_FROM = 4;

const isStep = ({ block }: AgentOutputBlock): boolean =>
  ["toolCall", "toolRequest", "fileChange", "thought"].includes(block.case ?? "");

/** Returns how many things an item contains. */
export const sizeOf = (item: Item): number => (item.kind === "steps" ? item.steps.length : 1);

/**
 * Returns a conversation in order: each input where its turn begins, then the blocks of the turn. An approval follows
 * the call that it is about, or else appears at the time of its request. Pending approvals are never folded.
 */
export function itemsOf(
  inputs: readonly AgentInput[],
  blocks: readonly AgentOutputBlock[],
  approvals: readonly Approval[] = [],
): Item[] {
  const received = inputs.filter(
    ({ receipt, input }) =>
      (receipt === Receipt.SEEN || receipt === Receipt.DELIVERED) && input.case !== "approval",
  );
  const items: Item[] = [];
  const left = new Map(received.map((input) => [input.id, input]));
  const say = (input: AgentInput) => {
    left.delete(input.id);
    items.push({ kind: "input", key: `input-${input.id}`, input });
  };
  const asked = placesOf(approvals, blocks);
  let turn = "";
  let steps: Step[] = [];
  const endSteps = () => {
    const [first] = steps;
    if (first && steps.length >= FOLDED_FROM) items.push({ kind: "steps", key: `steps-${first.key}`, steps });
    else items.push(...steps);
    steps = [];
  };
  const ask = (approval: Approval) => {
    if (approval.state === ApprovalState.PENDING) endSteps();
    steps.push({ kind: "approval", key: `approval-${approval.id}`, approval });
    if (approval.state === ApprovalState.PENDING) endSteps();
  };
  for (const block of blocks) {
    if (block.block.case === "plan" || block.block.case === "usage") continue;
    if (block.inputId !== turn) {
      turn = block.inputId;
      const begins = left.get(turn);
      if (begins) for (const approval of asked.until(begins.createdAt)) ask(approval);
      endSteps();
      // Also adds earlier inputs: a message that arrived during a turn begins none.
      if (begins) {
        for (const each of received) {
          if (each === begins) break;
          if (left.has(each.id)) say(each);
        }
        say(begins);
      }
    }
    for (const approval of asked.until(block.at)) ask(approval);
    const step: Step = { kind: "block", key: `block-${block.sequence}`, block };
    const about = asked.about(block);
    const isAsked = about.some(({ state }) => state === ApprovalState.PENDING);
    if (!isStep(block) || isAsked) endSteps();
    if (isStep(block)) steps.push(step);
    else items.push(step);
    for (const approval of about) ask(approval);
  }
  endSteps();
  for (const input of left.values()) say(input);
  for (const approval of asked.rest()) ask(approval);
  endSteps();
  return items;
}

/** Returns the id that an agent uses for the call or question of a block. */
const callOf = ({ block }: AgentOutputBlock): string =>
  block.case === "toolCall" || block.case === "question" ? block.value.id : "";

const msOf = (at: Approval["createdAt"]): number => (at ? timestampMs(at) : 0);

/** Assigns approvals to blocks; those without a block are placed by the time of their request. */
function placesOf(approvals: readonly Approval[], blocks: readonly AgentOutputBlock[]) {
  const calls = new Map<string, Approval[]>(blocks.map((block) => [callOf(block), []]));
  calls.delete("");
  const others: Approval[] = [];
  for (const approval of approvals.toSorted((one, other) => msOf(one.createdAt) - msOf(other.createdAt)))
    (calls.get(approval.asker?.toolCallId ?? "") ?? others).push(approval);
  return {
    about(block: AgentOutputBlock): readonly Approval[] {
      const call = callOf(block);
      const found = calls.get(call) ?? [];
      // A call and a question may share an id: approvals follow the first of them.
      calls.delete(call);
      return found;
    },
    until(at: Approval["createdAt"]): readonly Approval[] {
      const later = others.findIndex(({ createdAt }) => msOf(createdAt) >= msOf(at));
      return others.splice(0, later === -1 ? others.length : later);
    },
    rest: (): readonly Approval[] => others.splice(0),
  };
}
