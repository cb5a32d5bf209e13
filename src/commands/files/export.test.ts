import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { exportText } from "./export.ts";

test("an export controls no terminal, and says what the server has", () => {
  const document = {
    ...{ kind: "Group", name: "a", description: "\u{9b}31mred \u{1b}[0m\u{7f}", "\u{85}": "b" },
    ...{ note: "not \u{202e}txt.exe\u{2066} \u{61c}", hidden: "tag \u{e0041}", "key \u{202d}": "\u{200f}c" },
    lines: "one \u{202e}\ntwo\u{2028}three\n",
    plain: "\u{e9}\u{1f469}\u{200d}\u{1f680}\nand a block\n",
  };
  const text = exportText({ files: new Map([["groups.yaml", [document]]]), leftOut: [] });
  expect(text.replaceAll("\n", "")).not.toMatch(
    /[\p{Cc}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}\p{Co}\u{e0000}-\u{e007f}]/u,
  );
  expect(text).toContain("\u{e9}\u{1f469}\u{200d}\u{1f680}\n");
  expect(parse(text)).toEqual(document);
});
