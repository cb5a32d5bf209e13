import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { AGENT_PRESETS, type AgentPreset } from "../../src/commands/agent-presets.ts";
import { post } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { ROOT } from "../harness/program.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
} from "../harness/server.ts";

const [PRESET] = AGENT_PRESETS as [AgentPreset];

let server: ReachableServer;
let organization: { organizationId: string; token: string };
beforeAll(async () => {
  server = await startHostedServer();
  organization = await addOrganization(server, "Harbour");
});
afterAll(stopAll);

const line = (words: readonly string[]) => ["agent", ...words, "--data-dir", server.dataDir];
const agent = (...words: string[]) => runHostedCommand(line(words));
/** What a command that must succeed printed. */
const printed = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await agent(...words);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
};
/** What it printed as a program: each command once. */
const programPrinted = async (...words: string[]): Promise<string> => {
  const { code, stdout, stderr } = await runCommand(line(words));
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
};
/** The agents that an organization sees. */
const seen = async (token: string) => (await post(server, "AgentService/ListAgents", {}, token)).body.agents;

describe("npx chartroom agent", () => {
  test("registers agents while the server runs, for everybody or for one organization", async () => {
    const common = await programPrinted("add", "Coder", "--command", '["sh", "-c", "cat"]', "--default");
    expect(common).toMatch(/^agent [0-9a-f-]{36}\n$/);
    const more = ["--description", "reads", "--form", "json-lines", "--takes-settings"];
    await printed("add", "Reader", "--command", "cat -u", "--organization", "Harbour", ...more);
    expect(await seen(server.token)).toMatchObject([{ name: "Coder", own: false, default: true }]);
    expect(await seen(organization.token)).toMatchObject([
      { name: "Coder", own: false, default: true, takesSettings: false },
      { name: "Reader", own: true, default: false, takesSettings: true, description: "reads" },
    ]);
    const lines = (await programPrinted("list")).split("\n");
    expect(lines.filter(Boolean).map((line) => line.split("  ").slice(1))).toEqual([
      ["Coder", "all", "text", '["sh","-c","cat"]', "default"],
      ["Reader", organization.organizationId, "json-lines", '["cat","-u"]'],
    ]);
  });

  test("says which one is used where none is named, and takes agents off again", async () => {
    expect(await programPrinted("default", "Reader", "--organization", organization.organizationId)).toBe(
      "Reader is the default agent\n",
    );
    const reader = (await seen(organization.token))[1];
    const started = await post(server, "AgentService/StartAgent", {}, organization.token);
    const { agentExecutionId } = started.body;
    const found = await post(
      server,
      "AgentService/GetAgentExecution",
      { agentExecutionId },
      organization.token,
    );
    expect(found.body.agentExecution.spec.agentId).toBe(reader.id);
    expect(await programPrinted("remove", reader.id, "--organization", "Harbour")).toMatch(
      /is no longer registered\n$/,
    );
    expect(await seen(organization.token)).toMatchObject([{ name: "Coder" }]);
  });

  test.each([
    [
      "a name that is taken",
      ["add", "Coder", "--command", "cat"],
      "an agent of the name Coder is registered already",
    ],
    ["a shell's words", ["add", "Other", "--command", "cat | tee log"], "the command is run without a shell"],
    ["an agent that is none", ["remove", "Nobody"], "agent not found"],
    ["another owner's agent", ["default", "Coder", "--organization", "Harbour"], "agent not found"],
    ["an organization that is none", ["remove", "Coder", "--organization", "Nowhere"], "no organization has"],
  ])("ends with a sentence for %s", async (_, words, said) => {
    const { code, stdout, stderr } = await agent(...words);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^chartroom: /);
    expect(stderr).toContain(said);
    expect(stderr).not.toMatch(/\n\s+at /);
  });

  test("registers a known program by its preset, which the page has, too", async () => {
    expect(await printed("add", "Known", "--preset", PRESET.name)).toMatch(/^agent /);
    expect(await printed("list")).toContain(`  Known  all  acp  ${PRESET.command}\n`);
    const { stdout } = await runCommand(["agent", "presets"]);
    const page = readFileSync(join(ROOT, "docs/agents/presets.md"), "utf8");
    // Without headings, which only a terminal gets.
    expect(stdout.split("\n")).toHaveLength(AGENT_PRESETS.length + 1);
    for (const { name, command, install, secret } of AGENT_PRESETS) {
      expect(stdout).toContain(`${name}  ${command}  ${install}  ${secret}\n`);
      const [, packageName, version] = /^npm install --global (\S+)@(\S+)$/.exec(install) ?? [];
      expect(page).toContain(
        `| \`${name}\` | \`${JSON.parse(command)[0]}\` | \`${packageName}\` ${version} | \`${secret}\` |`,
      );
    }
  });

  test("wants a command, and one of the forms", async () => {
    for (const words of [
      ["add", "Other"],
      ["add", "Other", "--command", "cat", "--form", "xml"],
      ["add", "Other", "--preset", "nobody"],
      ["add", "Other", "--preset", PRESET.name, "--command", "cat"],
    ]) {
      const { code, stderr } = await agent(...words);
      expect([code, stderr.startsWith("error: ")]).toEqual([1, true]);
    }
  });
});
