import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AgentOutputBlockSchema, type AgentOutputBlock as Block } from "#gen/service/v1/agent_pb.js";
import { valueUnusable } from "../error.ts";

/** Where a run stands when blocks of it come. */
export interface OutputPlace {
  /** Number of the block that it has last; 0 before the first. */
  readonly lastSequence: number;
  /** The input that the agent got last, for blocks that do not say theirs; empty before the first. */
  readonly inputId: string;
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * The reported blocks that a run does not have yet, as they are kept.
 *
 * @throws DomainError VALUE_UNUSABLE for a block that leaves a gap, or says nothing
 */
export function newBlocks(reported: readonly Block[], { lastSequence, inputId, now }: OutputPlace): Block[] {
  const added: Block[] = [];
  for (const [index, { sequence, inputId: said, block }] of reported.entries()) {
    const next = lastSequence + added.length + 1;
    if (block.case === undefined) {
      throw valueUnusable(`blocks[${index}]`, "a block is a text, a file change, a tool request or an error");
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
        inputId: said || inputId,
        block,
      }),
    );
  }
  return added;
}

/** A text with the words of blocks behind it, cut to a number of characters. */
export function textOf(before: string, blocks: readonly Block[], most: number): string {
  const said = blocks.map(({ block }) => (block.case === "text" ? block.value.content : ""));
  const words = before + said.join("");
  return words.length <= most ? words : [...words].slice(0, most).join("");
}
