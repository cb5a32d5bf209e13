import { join } from "node:path";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { addScriptedAgent } from "../harness/agent-conversation.ts";
import { fencedBlocks } from "../harness/fenced-blocks.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { ROOT, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";

const blocks = fencedBlocks("docs/reviews.md").filter(({ language }) => language === "sh");

let server: ReachableServer;
let folder: string;
beforeAll(async () => {
  server = await startHostedServer();
  folder = bareRepository(temporaryFolder(), { "hello.txt": "Good morning\n" }, "hello").folder;
  await addScriptedAgent(server, join(temporaryFolder(), "received"));
  await startRegisteredRunner(server);
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

testWith("bash")("the page about reviews can be pasted from the top down", async () => {
  expect(blocks).toHaveLength(3);
  const npx = `npx() { shift; ${process.execPath} ${join(ROOT, "bin/chartroom.js")} "$@"; }\n`;
  const [start = "", comment = "", list = ""] = blocks.map(({ text }) =>
    text.replaceAll("/tmp/hello", folder),
  );
  // A reader looks again; the page's last command is repeated until it shows what the page says.
  const again = `until ${list.trim()} | grep outdated; do sleep 0.2; done\n${list}`;
  const { code, stdout } = await runProgram("bash", ["-e", "-c", npx + start + comment + again], {
    env: { ...terminalEnvironment(), CHARTROOM_SERVER: server.url, CHARTROOM_TOKEN: server.token },
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/Nearly there\.\nhello\/hello\.txt:2 {2}outdated\n {4}write hello\.txt/);
  // The agent answers it with deeds alone.
  expect(stdout).toContain("\n-- (a review with 1 comment) Nearly there.\n");
});
