import type { SecretMask, Secrets } from "../../domain/secrets.ts";
import { textBlocks, thoughtBlocks } from "./agent-block.ts";
import type { BlockContent } from "./agent-reporter.ts";

/** Masks secrets in text that an agent writes in several blocks, including secrets that span blocks. */
export class StreamedTextMask {
  readonly #secrets: Pick<Secrets, "stream">;
  readonly #report: (block: BlockContent) => void;
  #current: { readonly kind: "text" | "thought"; readonly mask: SecretMask } | undefined;

  /** @param report receives the masked blocks */
  constructor(secrets: Pick<Secrets, "stream">, report: (block: BlockContent) => void) {
    this.#secrets = secrets;
    this.#report = report;
  }

  /**
   * Masks a block of text and reports it. Holds back a possible start of a secret until the next block.
   * @returns false for a block of another kind, which is not consumed
   */
  take(block: BlockContent): boolean {
    if (block.case !== "text" && block.case !== "thought") return false;
    if (this.#current?.kind !== block.case) {
      this.end();
      this.#current = { kind: block.case, mask: this.#secrets.stream() };
    }
    this.#reportMasked(this.#current.mask.write(Buffer.from((block.value.content ?? "").toWellFormed())));
    return true;
  }

  /** Reports the text that was held back. Call it before anything else is reported. */
  end(): void {
    if (this.#current) this.#reportMasked(this.#current.mask.end());
    this.#current = undefined;
  }

  #reportMasked(bytes: Buffer): void {
    const blocks = this.#current?.kind === "thought" ? thoughtBlocks : textBlocks;
    for (const block of blocks(bytes.toString())) this.#report(block);
  }
}
