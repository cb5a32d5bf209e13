import { expect, test } from "@jest/globals";
import { parse } from "yaml";
import { exportText } from "./export.ts";

test("an export controls no terminal, and says what the server has", () => {
  const document = { kind: "Group", name: "a", description: "\u{9b}31mred \u{1b}[0m\u{7f}", "\u{85}": "b" };
  const text = exportText({ files: new Map([["groups.yaml", [document]]]), leftOut: [] });
  expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(parse(text)).toEqual(document);
});
