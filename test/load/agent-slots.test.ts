import { afterAll, expect, test } from "@jest/globals";
import { addDefaultAgent } from "../harness/added-agent.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

afterAll(async () => {
  await stopRunners();
  await stopAll();
});

/** More than the streams of service.v1 that one token may have open. */
const RUNS = 80;
/** On a machine of any speed. */
const LONGEST_MS = 600_000;

test(
  "one runner holds as many agent runs as it has slots, and each of them gets its inputs",
  async () => {
    // Those that have waited long keep their slots and their leases, however slow the machine is.
    const server = await startHostedServer({
      args: ["--agent-slot-time", "86400", "--lease-duration", "3600"],
    });
    // Of the plain form, so that a run that waits has a stream of inputs and no process.
    await addDefaultAgent(server, "echo", "text", ["cat"]);
    const runner = await startRegisteredHostedRunner(server, {
      args: ["--agent-slots", String(RUNS), "--slots", "8"],
    });
    const call = (operation: string, body: object): Promise<Answer["body"]> =>
      succeeded(post(server, `AgentService/${operation}`, body));
    const ids: string[] = [];
    while (ids.length < RUNS) ids.push((await call("StartAgent", {})).agentExecutionId);
    const taken = () =>
      runner.log().filter(({ msg, work }) => msg === "work taken" && work === "agent").length;
    await until(taken, (count) => count === RUNS, LONGEST_MS);

    for (const agentExecutionId of ids) {
      const userInput = { id: "1", inputs: [{ text: { content: "x" } }] };
      await call("SendToAgentExecution", { agentExecutionId, userInput });
    }
    const hasGot = async (agentExecutionId: string) => {
      const { inputs } = await call("ListAgentInputs", { agentExecutionId, includePast: true });
      return inputs[0].receipt === "AGENT_INPUT_RECEIPT_SEEN";
    };
    let open = ids;
    await until(
      async () => {
        const got = await Promise.all(open.slice(0, 20).map(hasGot));
        open = open.filter((_, index) => !got[index]);
        return open;
      },
      (left) => left.length === 0,
      LONGEST_MS,
    );
    expect(runner.log().filter(({ msg, work }) => msg === "work ended" && work === "agent")).toEqual([]);
  },
  2 * LONGEST_MS,
);
