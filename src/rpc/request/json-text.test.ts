import { describe, expect, test } from "@jest/globals";
import { readJsonText } from "./request-reading.ts";

const read = (text: string) => readJsonText(new TextEncoder().encode(text));

describe("the text of a JSON body", () => {
  test.each(["{}", '{"a":"é東🐧"}', '{"a":"\\ud83d\\udc27"}', '{"a":"\\\\ud800"}', "no JSON at all"])(
    "is read as it is: %s",
    (text) => {
      expect(read(text)).toBe(text);
    },
  );

  test.each(['"\\ud800"', '{"a":"b\\uDC00c"}', '{"\\ud800":1}', '[["\\udc00\\ud800"]]', '{"a":"🐧\\ud83d"}'])(
    "is refused with half a character in it: %s",
    (text) => {
      expect(() => read(text)).toThrow("half a character");
    },
  );

  test("is refused when its bytes are no UTF-8", () => {
    expect(() => readJsonText(Uint8Array.of(0x22, 0xff, 0x22))).toThrow("not valid");
  });

  test("is refused in words that can be sent, wherever the engine cuts its quotation", () => {
    for (let before = 0; before < 40; before++) {
      const text = `{"a":"${"x".repeat(before)}${"🐧".repeat(40)}" x ${"🐧".repeat(40)}}`;
      expect(() => read(text)).toThrow(expect.objectContaining({ message: expect.stringMatching(/JSON/) }));
      try {
        read(text);
      } catch (error) {
        expect((error as Error).message.isWellFormed()).toBe(true);
      }
    }
  });
});
