import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConversationClient } from "../../src/commands/chat/conversation-client.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { createAgentFixture, startLeasedAgentExecution } from "../harness/leased-agent-execution.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
});
afterAll(stopAll);

test("everything is answered once the agent has it, waits, and its answers were read", async () => {
  const home = await createAgentFixture(server);
  const run = await startLeasedAgentExecution(home);
  const place = { server: server.url, token: home.token, agentExecutionId: run.id, retryForMs: 0 };
  const client = new ConversationClient(place);
  const leaving = new AbortController();
  const news = client.watch(leaving.signal, () => undefined);
  await run.wait();
  expect(await client.hasAnsweredAll()).toBe(true);

  await run.say("a");
  expect(await client.hasAnsweredAll()).toBe(false);
  const inputs = run.inputs();
  await inputs.until(1);
  expect(await client.hasAnsweredAll()).toBe(false);
  // It has it, and the run is at work.
  await run.begin("a");
  expect(await client.hasAnsweredAll()).toBe(false);
  await succeeded(
    run.report({ blocks: [{ sequence: 1, text: { content: "one" } }], state: "STATE_WAITING" }),
  );
  expect(await client.hasAnsweredAll()).toBe(false);
  for await (const event of news) if (event.case === "block") break;
  expect(await client.hasAnsweredAll()).toBe(true);
  leaving.abort();
  inputs.cancel();
});
