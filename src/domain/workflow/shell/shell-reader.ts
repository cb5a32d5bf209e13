import type { ParameterExpression } from "../parameter/parameter-expression.ts";
import { newCommandFrame, type ShellFrame } from "./shell-frame.ts";

/**
 * The reason why an expression is in an unsupported position; completes "{{ .Parameters.<key> }}
 * is ...".
 */
export class UnsupportedPosition extends Error {
  override readonly name = "UnsupportedPosition";
}

/** The position in a program, with the constructs that are open there. */
export class ShellReader {
  readonly text: string;
  /** Offset of the next character, in UTF-16 units. */
  at = 0;
  /** Open constructs, innermost last; the program itself is never closed. */
  readonly stack: ShellFrame[] = [newCommandFrame(false)];
  /**
   * Offset where reading must stop for now: the end of the here-document around, or of the program.
   */
  limit: number;
  /** The expressions that are not read yet. */
  readonly #ahead: ParameterExpression[];

  constructor(text: string, expressions: readonly ParameterExpression[]) {
    this.text = text;
    this.limit = text.length;
    this.#ahead = expressions.toReversed();
  }

  /** Returns the first expression that is not read yet. */
  get expression(): ParameterExpression | undefined {
    return this.#ahead.at(-1);
  }

  get top(): ShellFrame {
    const top = this.stack.at(-1);
    if (!top) throw new Error("the program's own frame was closed");
    return top;
  }

  /** Returns whether the program continues with this text, `ahead` units from here. */
  lookingAt(text: string, ahead = 0): boolean {
    return this.text.startsWith(text, this.at + ahead);
  }

  skip(units: number): void {
    this.at += units;
  }

  /** Reads the opening of a construct and enters its frame. */
  open(frame: ShellFrame, units: number): void {
    if (frame.kind === "hereDocument") this.limit = frame.end;
    this.stack.push(frame);
    this.at += units;
  }

  /** Reads the closing of the innermost frame. */
  close(units: number): void {
    if (this.stack.pop()?.kind === "hereDocument") {
      const around = this.stack.findLast((frame) => frame.kind === "hereDocument");
      this.limit = around?.end ?? this.text.length;
    }
    this.at += units;
  }

  /** Reads the next expression as a whole. */
  skipExpression(): void {
    const expression = this.#ahead.pop();
    if (expression) this.at = expression.end;
  }

  /** Reads a backslash and what it escapes. */
  escape(): void {
    if (this.expression?.start === this.at + 1) {
      throw new UnsupportedPosition("right after a backslash: write \\\\ for a backslash before it");
    }
    this.at += 2;
  }

  /** Ends the analysis: positions after this cannot be determined; completes "is after ...". */
  rejectFromHere(reason: string): never {
    throw new UnsupportedPosition(
      `after ${reason}, from where on shells may differ: assign it to a variable before that`,
    );
  }
}
