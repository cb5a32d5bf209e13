import type { AgentOutputBlock } from "#gen/service/v1/agent_pb.js";

/** The end of a turn of a conversation. */
export interface TurnEnd {
  /** Number of its last block. */
  readonly sequence: bigint;
  /** The last block of the turn that has text, or else its last one. */
  readonly end: AgentOutputBlock;
}

/**
 * Returns the ends of the turns of a conversation, except the last turn, which may continue.
 * @param blocks every block, by number ascending
 */
export function turnsOf(blocks: readonly AgentOutputBlock[]): TurnEnd[] {
  const turns: TurnEnd[] = [];
  let end: AgentOutputBlock | undefined;
  for (const [at, block] of blocks.entries()) {
    if (block.block.case === "text" || end === undefined) end = block;
    const next = blocks[at + 1];
    if (!next || next.inputId === block.inputId) continue;
    // What the agent outputs before the first input belongs to no turn.
    if (block.inputId !== "") turns.push({ sequence: block.sequence, end });
    end = undefined;
  }
  return turns;
}
