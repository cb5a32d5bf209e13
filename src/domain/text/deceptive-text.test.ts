import { describe, expect, test } from "@jest/globals";
import { DomainError } from "../error.ts";
import { requireNoDeceptiveText } from "./deceptive-text.ts";

/**
 * Returns the cleaned text that the error of a prompt carries; undefined for a prompt that is
 * accepted as it is.
 */
function cleaned(text: string): string | undefined {
  try {
    requireNoDeceptiveText(text, "prompt");
    return undefined;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    expect(error.metadata.field).toBe("prompt");
    return error.metadata.cleaned;
  }
}

const at = (...codes: number[]) => String.fromCodePoint(...codes);

describe("a prompt", () => {
  test.each([0x202d, 0x202e, 0xe0000, 0xe0001, 0xe0020, 0xe007f])("with U+%#x is refused", (code) => {
    expect(cleaned(`run ${at(code)}it`)).toBe("run it");
  });

  test.each([0x202c, 0x202f, 0xdffff, 0xe0080, 0xe0100])("with the neighbouring U+%#x passes", (code) => {
    expect(cleaned(`run ${at(code)}it`)).toBeUndefined();
  });

  test("of right-to-left text passes, with its marks, embeddings and isolates", () => {
    const marks = [0x200e, 0x200f, 0x061c, 0x202a, 0x202b, 0x202c, 0x2066, 0x2067, 0x2068, 0x2069];
    expect(cleaned(`שלום ${at(...marks)} مرحبا 👩‍👩‍👧 🇩🇪`)).toBeUndefined();
  });

  test("with words hidden in tag characters is shown without them", () => {
    const hidden = [..."rm"].map((letter) => at(0xe0000 + (letter.codePointAt(0) ?? 0))).join("");
    expect(cleaned(`tidy up${hidden}`)).toBe("tidy up");
  });

  test("with a flag of tag characters keeps the flag's base", () => {
    expect(cleaned(at(0x1f3f4, 0xe0067, 0xe0062, 0xe0065, 0xe006e, 0xe0067, 0xe007f))).toBe(at(0x1f3f4));
  });

  test.each([4_095, 4_096, 4_097])("of %i characters is shown by its first 4,096 at most", (length) => {
    const text = "😀".repeat(length);
    expect([...(cleaned(text + at(0x202e)) ?? "")]).toHaveLength(Math.min(length, 4_096));
  });

  test("of nothing but such characters is cleaned to nothing", () => {
    expect(cleaned(at(0x202e))).toBe("");
  });
});
