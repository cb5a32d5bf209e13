import type { ParameterExpression } from "../parameter/parameter-expression.ts";
import { commandFrame, type ShellFrame } from "./shell-frame.ts";

/** Why an expression cannot be carried out; completes "{{ .Parameters.<key> }} stands ...". */
export class PlaceRefused extends Error {
  override readonly name = "PlaceRefused";
}

/** How far a program is read, and what is open there. */
export class ShellReader {
  readonly text: string;
  /** The offset of what is read next, in UTF-16 units. */
  at = 0;
  /** What is open, innermost last; the program itself is never closed. */
  readonly stack: ShellFrame[] = [commandFrame(false)];
  /** Where reading must stop for now: the end of the here-document around, or of the program. */
  limit: number;
  /** The expressions that are not read yet. */
  readonly #ahead: ParameterExpression[];

  constructor(text: string, expressions: readonly ParameterExpression[]) {
    this.text = text;
    this.limit = text.length;
    this.#ahead = expressions.toReversed();
  }

  /** The first expression that is not read yet. */
  get expression(): ParameterExpression | undefined {
    return this.#ahead.at(-1);
  }

  get top(): ShellFrame {
    const top = this.stack.at(-1);
    if (!top) throw new Error("the program's own frame was closed");
    return top;
  }

  /** Whether the program goes on with this text, `ahead` units from here. */
  sees(text: string, ahead = 0): boolean {
    return this.text.startsWith(text, this.at + ahead);
  }

  skip(units: number): void {
    this.at += units;
  }

  /** Reads the opening of something and what follows as its inside. */
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
  passExpression(): void {
    const expression = this.#ahead.pop();
    if (expression) this.at = expression.end;
  }

  /** Reads a backslash and what it escapes. */
  escape(): void {
    if (this.expression?.start === this.at + 1) {
      throw new PlaceRefused("right after a backslash: write \\\\ for a backslash before it");
    }
    this.at += 2;
  }

  /** From here on places cannot be told; completes "stands after ...". */
  unclear(what: string): never {
    throw new PlaceRefused(
      `after ${what}, from where on shells may differ: assign it to a variable before that`,
    );
  }
}
