import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { freePort } from "../harness/free-port.ts";
import { ok } from "../harness/host-token.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { until } from "../harness/until.ts";

const dataDir = join(temporaryFolder(), "data");
let server: HostedServer;
beforeAll(async () => {
  const port = String(await freePort());
  server = await startHostedServer({ dataDir, args: ["--sample-data", "--port", port] });
});
afterAll(stopAll);

const call = (operation: string, body: object = {}) => ok(post(server, operation, body));
const named = (rows: readonly { metadata: { name: string } }[]) =>
  rows.map(({ metadata }) => metadata.name).sort();

describe("--sample-data", () => {
  test("fills a fresh folder: two projects, runs, a workflow that has run, and one in progress", async () => {
    const asked = await until(
      () => call("ApprovalService/ListApprovals", { filter: { states: ["APPROVAL_STATE_PENDING"] } }),
      ({ approvals }) => approvals.length === 2,
    );
    expect(asked.approvals.map(({ kind }: { kind: string }) => kind).sort()).toEqual([
      "APPROVAL_KIND_PUSH",
      "APPROVAL_KIND_TOOL_CALL",
    ]);
    const { projects } = await call("ProjectService/ListProjects");
    expect(named(projects)).toEqual(["Sample: hello", "Sample: tools"]);
    const { agentExecutions } = await call("AgentService/ListAgentExecutions");
    expect(named(agentExecutions)).toEqual(["Sample: a push", "Sample: ask first", "Sample: greet"]);
    const { outputs } = await until(
      () => call("WorkflowService/ListWorkflowExecutionOutputs"),
      (body) => body.outputs.length === 2,
    );
    for (const { values } of outputs) expect(values.lines.intValue).toBe("3");
    // The one that put these out ends after them, and the other one may wait for a place at the runner.
    const running = { filter: { statusPhases: ["WORKFLOW_EXECUTION_PHASE_RUNNING"] } };
    await until(
      () => call("WorkflowService/ListWorkflowExecutions", running),
      (body) => body.workflowExecutions.length === 1,
    );
    expect(server.output()).toContain(
      'npx chartroom organization remove "Sample organization" --yes --force',
    );
  });

  test("approves the push of the sample", async () => {
    const { approvals } = await call("ApprovalService/ListApprovals", {
      filter: { states: ["APPROVAL_STATE_PENDING"] },
    });
    const push = approvals.find(({ kind }: { kind: string }) => kind === "APPROVAL_KIND_PUSH");
    const decision = { approvalId: push.id, digest: push.digest, decision: "DECISION_APPROVE" };
    await call("ApprovalService/DecideApproval", decision);
    const branch = join(`${dataDir}-sample`, "tools/.git/refs/heads/sample/push");
    await until(
      () => existsSync(branch),
      (is) => is,
    );
  });

  test("goes on at the same address, with the command that it printed", async () => {
    await server.stop();
    const [, args = ""] = /^ {2}npm start -- (.+)$/m.exec(server.output()) ?? [];
    const again = await startHostedServer({ dataDir, args: args.split(" ") });
    expect(again.url).toBe(server.url);
    await call("ProjectService/ListProjects");
    await again.stop();
  });

  test("is refused on a folder with data, and removed in one command", async () => {
    const again = startHostedServer({ dataDir, args: ["--sample-data"] });
    await expect(again).rejects.toThrow(
      /--sample-data fills a fresh folder, and .* has data: name another one/,
    );
    const removal = [
      "organization",
      "remove",
      "Sample organization",
      "--yes",
      "--force",
      "--data-dir",
      dataDir,
    ];
    expect(await runHostedCommand(removal)).toMatchObject({ code: 0 });
    const { stdout } = await runHostedCommand(["organization", "list", "--data-dir", dataDir]);
    expect(stdout).not.toContain("Sample");
    // What was removed is no fresh folder: its chain of the audit log goes on.
    const afterwards = startHostedServer({ dataDir, args: ["--sample-data"] });
    await expect(afterwards).rejects.toThrow(/has data/);
  });

  test("is made next to the organization of a first start that nobody has used, and by its runner", async () => {
    const folder = join(temporaryFolder(), "data");
    const first = await startHostedServer({ dataDir: folder });
    await first.stop();
    const again = await startHostedServer({ dataDir: folder, args: ["--sample-data"] });
    expect(again.output()).toMatch(
      /was created in addition to yours.*\nSign in .*\n\n {2}http:\S+\/sign-in#cr_lnk_\w+\n/,
    );
    const on = ["--data-dir", folder];
    const { stdout: organizations } = await runHostedCommand(["organization", "list", ...on]);
    expect(organizations).toMatch(/My organization\n.*Sample organization\n/);
    const ofSample = ["--organization", "Sample organization", ...on];
    const { stdout: members } = await runHostedCommand(["member", "list", ...ofSample]);
    const administrator = members.split("\n").find((line) => line.includes("admin@localhost"));
    const userId = administrator?.split(/\s/)[0] ?? "";
    const created = await runHostedCommand(["token", "create", "--user", userId, ...on]);
    const token = created.stdout.trim();
    await until(
      () => ok(post({ ...again, token }, "WorkflowService/ListWorkflowExecutionOutputs", {})),
      (body) => body.outputs.length === 2,
    );
    await again.stop();
    const third = startHostedServer({ dataDir: folder, args: ["--sample-data"] });
    await expect(third).rejects.toThrow(/has data/);
  });
});
