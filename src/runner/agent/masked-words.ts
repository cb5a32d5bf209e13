import type { SecretMask, Secrets } from "../../domain/secrets.ts";
import { textBlocks, thoughtBlocks } from "./agent-block.ts";
import type { BlockContent } from "./agent-reporter.ts";

/** Masks secrets in the words that an agent writes in pieces, including secrets that are split across pieces. */
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
   * Masks a block of words and reports it. Holds back a possible start of a secret until the next block.
   * @returns false for a block of another kind, which is not consumed
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

  /** Reports the words that were held back. Call it before anything else is reported. */
  end(): void {
    if (this.#current) this.#tellMasked(this.#current.mask.end());
    this.#current = undefined;
  }

  #tellMasked(bytes: Buffer): void {
    const blocks = this.#current?.kind === "thought" ? thoughtBlocks : textBlocks;
    for (const block of blocks(bytes.toString())) this.#tell(block);
  }
}
