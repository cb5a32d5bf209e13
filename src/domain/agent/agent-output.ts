import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentOutputBlockSchema, type AgentOutputBlock as Block } from "#gen/service/v1/agent_pb.js";
import { valueUnusable } from "../error.ts";

/** The state of an execution's output when new blocks arrive. */
export interface OutputPosition {
  /** Number of its last block; 0 before the first. */
  readonly lastSequence: number;
  /**
   * Id of the input that the agent received last, for blocks that do not name theirs; empty before
   * the first.
   */
  readonly inputId: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * Returns the reported blocks that the execution does not have yet, as they are stored.
 * @throws DomainError VALUE_UNUSABLE for a block that leaves a gap, or is empty
 */
export function newBlocks(
  reported: readonly Block[],
  { lastSequence, inputId, now }: OutputPosition,
): Block[] {
  const added: Block[] = [];
  for (const [index, { sequence, inputId: ownInputId, block }] of reported.entries()) {
    const next = lastSequence + added.length + 1;
    if (block.case === undefined) {
      throw valueUnusable(`blocks[${index}]`, "the block has no content that this release knows");
    }
    if (sequence < next && sequence > 0) continue;
    if (sequence !== BigInt(next)) {
      const message = `the block leaves a gap: the next one has the number ${next}`;
      throw valueUnusable(`blocks[${index}].sequence`, message);
    }
    added.push(
      create(AgentOutputBlockSchema, {
        sequence,
        at: timestampFromMs(now),
        inputId: ownInputId || inputId,
        block,
      }),
    );
  }
  return added;
}

/** Returns a text with the texts of blocks appended, truncated to a number of characters. */
export function appendText(before: string, blocks: readonly Block[], maxCharacters: number): string {
  const ownInputId = blocks.map(({ block }) => (block.case === "text" ? block.value.content : ""));
  const words = before + ownInputId.join("");
  return words.length <= maxCharacters ? words : [...words].slice(0, maxCharacters).join("");
}

/**
 * Requires that the output of an agent execution has reached a sequence number.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireReachedSequence(after: number, lastSequence: number): void {
  if (after <= lastSequence) return;
  throw valueUnusable("afterSequence", "afterSequence is higher than the last number of the agent run");
}
