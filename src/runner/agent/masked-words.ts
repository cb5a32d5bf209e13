import type { SecretMask, Secrets } from "../../domain/secrets.ts";
import { textBlocks, thoughtBlocks } from "./agent-block.ts";
import type { BlockContent } from "./agent-reporter.ts";

/** Masks the words of an agent that tells them in pieces, also a secret that is split across them. */
export class MaskedWords {
  readonly #secrets: Pick<Secrets, "stream">;
  readonly #tell: (block: BlockContent) => void;
  #current: { readonly kind: "text" | "thought"; readonly mask: SecretMask } | undefined;

  /** @param tell receives the masked blocks */
  constructor(secrets: Pick<Secrets, "stream">, tell: (block: BlockContent) => void) {
    this.#secrets = secrets;
    this.#tell = tell;
  }

  /**
   * Takes a block of words; what may be the start of a secret goes with the next.
   * @returns false for any other block
   */
  take(block: BlockContent): boolean {
    if (block.case !== "text" && block.case !== "thought") return false;
    if (this.#current?.kind !== block.case) {
      this.end();
      this.#current = { kind: block.case, mask: this.#secrets.stream() };
    }
    this.#tellMasked(this.#current.mask.write(Buffer.from((block.value.content ?? "").toWellFormed())));
    return true;
  }

  /** Tells what was held back: something else follows. */
  end(): void {
    if (this.#current) this.#tellMasked(this.#current.mask.end());
    this.#current = undefined;
  }

  #tellMasked(bytes: Buffer): void {
    const blocks = this.#current?.kind === "thought" ? thoughtBlocks : textBlocks;
    for (const block of blocks(bytes.toString())) this.#tell(block);
  }
}
