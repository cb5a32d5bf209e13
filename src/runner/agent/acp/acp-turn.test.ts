import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AgentInputSchema } from "#gen/service/v1/agent_pb.js";
import { AgentReviewComment_Side as Side } from "#gen/service/v1/agent_review_pb.js";
import { WorkspaceFiles } from "./acp-files.ts";
import { promptOf } from "./acp-turn.ts";

let folder: string;
let tree: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "chartroom-turn-")));
  tree = join(folder, "tree");
  mkdirSync(join(tree, "ship"), { recursive: true });
  writeFileSync(join(tree, "ship/a b.ts"), "");
  writeFileSync(join(folder, "outside.txt"), "");
  symlinkSync(join(folder, "outside.txt"), join(tree, "ship/link"));
  symlinkSync(folder, join(tree, "ship/up"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a review is its words, and one link to each of its files that is in the workspace", async () => {
  const at = (path: string, firstLine: number, lastLine: number, side = Side.NEW) => ({
    side,
    present: { path, firstLine, lastLine },
  });
  const comments = [
    at("ship/a b.ts", 2, 3),
    at("ship/a b.ts", 9, 9),
    at("ship/a b.ts", 4, 4, Side.OLD),
    at("ship", 1, 1),
    at("ship/gone.ts", 1, 1),
    at("ship/link", 1, 1),
    at("ship/up/outside.txt", 1, 1),
    at("../outside.txt", 1, 1),
    at("", 0, 0),
    {},
  ];
  const inputs = [
    { input: { case: "text" as const, value: { content: "Review of your changes" } } },
    { input: { case: "review" as const, value: { comments } } },
  ];
  const input = create(AgentInputSchema, { input: { case: "userInput", value: { inputs } } });
  const files = new WorkspaceFiles(tree, undefined);
  const abilities = {
    capabilities: {},
    commands: new Set<string>(),
    resolve: (path: string) => files.resolve(join(tree, path)),
  };
  expect(await promptOf(input, abilities, async () => "")).toEqual([
    { type: "text", text: "Review of your changes" },
    {
      type: "resource_link",
      uri: pathToFileURL(join(tree, "ship/a b.ts")).href,
      name: "ship/a b.ts",
      description: "comments on lines 2-3, 9",
    },
  ]);
});
