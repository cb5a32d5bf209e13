import type { AgentOutputBlock } from "#gen/service/v1/agent_pb.js";

/** The end of a turn of a conversation. */
export interface TurnEnd {
  /** Number of its last block. */
  readonly sequence: bigint;
  /** The last block of it that has words, or its last one. */
  readonly end: AgentOutputBlock;
}

/**
 * Returns the ends of the turns of a conversation, but for the last one, which may go on.
 * @param blocks every block, by number ascending
 */
export function turnsOf(blocks: readonly AgentOutputBlock[]): TurnEnd[] {
  const turns: TurnEnd[] = [];
  let end: AgentOutputBlock | undefined;
  for (const [at, block] of blocks.entries()) {
    if (block.block.case === "text" || end === undefined) end = block;
    const next = blocks[at + 1];
    if (!next || next.inputId === block.inputId) continue;
    // What the agent says before the first input belongs to no turn.
    if (block.inputId !== "") turns.push({ sequence: block.sequence, end });
    end = undefined;
  }
  return turns;
}
