import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "@jest/globals";
import { closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { ROOT } from "../harness/program.ts";
import {
  startHostedRunner,
  startRegisteredHostedRunner,
  startRegisteredRunner,
  stopRunners,
} from "../harness/runner-process.ts";
import { runHostedCommand, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterEach(async () => {
  closeConversations();
  await stopRunners();
});
afterAll(stopAll);

const PROGRAM = join(ROOT, "test/harness/acp-agent.ts");

test("an agent of the protocol goes on with its session after its runner was killed in the middle of a turn", async () => {
  const server = await startHostedServer({ args: LONG_LEASES });
  const command = JSON.stringify([process.execPath, PROGRAM, JSON.stringify({ resume: true })]);
  const data = ["--data-dir", server.dataDir];
  const added = await runHostedCommand([
    "agent",
    "add",
    "scripted",
    "--command",
    command,
    "--form",
    "acp",
    "--default",
    ...data,
  ]);
  expect([added.code, added.stderr]).toEqual([0, ""]);
  expect((await runHostedCommand(["agent", "list", ...data])).stdout).toContain("  scripted  all  acp  ");
  const { stateDir, kill } = await startRegisteredRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", "echo the first words");
  await conversation.untilOutput("the first words");
  await conversation.say("two", "slow");
  await conversation.untilOutput("working");
  await kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir });
  await conversation.say("three", "remember");
  await until(conversation.output, (said) => said.at(-1) === "echo the first words");
  await conversation.untilIdle();
  expect(conversation.output()).toEqual([
    "the first words",
    "working",
    "error: the runner was lost in the middle of a turn",
    "echo the first words",
  ]);
  const receipts = (await conversation.inputs()).map(({ id, receipt }) => `${id} ${receipt}`);
  expect(receipts).toEqual(["one", "two", "three"].map((id) => `${id} AGENT_INPUT_RECEIPT_SEEN`));
  await conversation.stop();
  await conversation.untilPhase("STOPPED");
});

test("an agent receives the MCP servers that it was registered with", async () => {
  const server = await startHostedServer();
  const command = JSON.stringify([process.execPath, PROGRAM, "{}"]);
  const data = ["--data-dir", server.dataDir];
  const servers = ["--mcp-server", "docs=https://docs.example.org/mcp", "--mcp-server", "files=mcp-files ."];
  const add = (form: string) =>
    runHostedCommand(["agent", "add", "scripted", "--command", command, "--form", form, ...servers, ...data]);
  const refused = await add("text");
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("agents of the form acp")]);
  expect((await add("acp")).code).toBe(0);
  await runHostedCommand(["agent", "default", "scripted", ...data]);
  await startRegisteredHostedRunner(server);
  const conversation = await startConversation(server);
  await conversation.say("one", "show");
  await conversation.untilIdle();
  const docs = '{"name":"docs","url":"https://docs.example.org/mcp","headers":[],"type":"http"}';
  const files = '{"name":"files","command":"mcp-files","args":["."],"env":[]}';
  expect(conversation.output().join("")).toContain(`new [${docs},${files}]`);
});
