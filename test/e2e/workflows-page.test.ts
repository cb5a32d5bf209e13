import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { TriggerVerdictSchema, WorkflowTrigger_OverlapPolicySchema } from "#gen/service/v1/workflow_pb.js";
import { type FencedBlock, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT, runProgram, terminalEnvironment, testWith } from "../harness/program.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import { executionsOf, ledgerOf } from "../harness/webhook.ts";

const PAGE = readFileSync(join(ROOT, "docs/workflows.md"), "utf8");
const SECTIONS = ["Cron", "Webhooks", "The ledger"];
const commands = fencedBlocks("docs/workflows.md").filter(
  ({ section, language }) => SECTIONS.includes(section) && language === "sh",
);

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

describe("the page about workflows", () => {
  testWith(
    "bash",
    "curl",
    "openssl",
  )("has triggers that can be pasted from the top down", async () => {
    const env: Record<string, string | undefined> = { ...terminalEnvironment() };
    const values: Readonly<Record<string, () => string>> = {
      TOKEN: () => server.token,
      WORKFLOW_ID: () => answers[0].workflow.id,
      SECRET: () => answers.at(-1).secret,
      TRIGGER_EVENT_ID: () => answers.at(-1).triggerEvents[0].id,
    };
    // biome-ignore lint/suspicious/noExplicitAny: answers of several operations
    const answers: any[] = [];
    for (const block of commands) {
      const variable = /^export (\w+)=\S*\.\.\.\n$/.exec(block.text)?.[1];
      if (variable !== undefined) env[variable] = values[variable]?.();
      else answers.push(await paste(block, env));
    }
    const [created, byToken, secret, byHub, byStandard, ledger, redelivered] = answers;
    expect(created.workflow.spec.triggers).toHaveLength(3);
    expect(secret.secret).toMatch(/^whsec_/);
    for (const { verdicts } of [byToken, byHub, byStandard]) {
      expect(verdicts).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED", triggerIndex: 1 }]);
    }
    expect(ledger.triggerEvents.map(({ deliveryId }: { deliveryId: string }) => deliveryId)).toEqual([
      "second-delivery",
      "first-delivery",
      "",
    ]);
    expect(redelivered.triggerEvents).toMatchObject([{ verdict: "TRIGGER_VERDICT_STARTED" }]);
    expect(answers).toHaveLength(7);
    expect(await executionsOf(server, created.workflow.id)).toHaveLength(4);
    expect(await ledgerOf(server, created.workflow.id)).toHaveLength(4);
  });

  test("shows the form of an answer as it is", () => {
    const shown = fencedBlocks("docs/workflows.md").find(
      ({ section, language }) => section === "Webhooks" && language === "json",
    );
    expect(Object.keys(JSON.parse(shown?.text ?? "{}").verdicts[0])).toEqual([
      "triggerEventId",
      "verdict",
      "reason",
      "triggerIndex",
      "workflowExecutionId",
    ]);
  });

  test("names every verdict and every overlap policy", () => {
    const verdicts = TriggerVerdictSchema.values
      .slice(1)
      .map(({ name }) => name.replace("TRIGGER_VERDICT_", ""));
    const policies = WorkflowTrigger_OverlapPolicySchema.values.slice(1).map(({ name }) => name);
    for (const name of [...verdicts, ...policies]) expect(PAGE).toContain(`| \`${name}\``);
  });
});

/** Pastes commands into another terminal than the server's; their answer. */
async function paste({ text }: FencedBlock, env: Readonly<Record<string, string | undefined>>) {
  const command = text.replaceAll("http://127.0.0.1:8080", server.url);
  const { code, stdout, stderr } = await runProgram("bash", ["-e", "-c", command], { env });
  if (code !== 0) throw new Error(`bash ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout);
}
