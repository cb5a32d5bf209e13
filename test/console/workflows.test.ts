import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { look } from "./axe.ts";
import { closeAll, drawnIn, openAs, type Visit, valued } from "./browser.ts";
import { expectForgotten, stateOf } from "./page-state.ts";

let server: HostedServer;
let runner: FakeRunner;
let visit: Visit;
beforeAll(async () => {
  // It traces, and sends none of it.
  const traced = ["--otlp-traces-endpoint", "http://127.0.0.1:9", "--trace-ratio", "0"];
  server = await startHostedServer({ args: [...LONG_LEASES, ...traced] });
  runner = await registerRunner(server);
  visit = await openAs(server, "admin@localhost");
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

const call = (operation: string, body: object): Promise<Answer["body"]> =>
  succeeded(post(server, `WorkflowService/${operation}`, body));

const groupOf = async (name: string) => {
  const { user } = await succeeded(post(server, "UserService/GetAuthenticatedUser", {}));
  return { organizationId: user.organizationId, name };
};

const idOfPage = () => new URL(visit.page.url()).pathname.split("/").at(-1) ?? "";

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Colours, a title of the window, a line written over, HTML, and a character that turns the order of reading. */
const HOSTILE = "\u001b[31mred\u001b[0m \u001b]0;title\u0007ten\rtwelve <b>tests</b> \u202egnp\n";

describe("a workflow", () => {
  test("takes a click on a button although a message appears above it between press and release", async () => {
    const page = await visit.context.newPage();
    await page.goto(`${visit.origin}/workflows/new`);
    await page.getByLabel("Name", { exact: true }).focus();
    await page.keyboard.press("Tab");
    // From here on the page knows about all rules, and shows those of the fields that somebody has left.
    await page.getByText("name must be between 1 and 80 characters").waitFor();
    await page.getByLabel(/^Command/).focus();
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByText("command must be between 1 and 20,000 characters").waitFor();
    await page.getByText("Step 2", { exact: true }).waitFor();
    await page.close();
  });

  test("is created in a form that tells which rules of the contract a field breaks", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Workflows", exact: true }).click();
    await page.getByText("There are no workflows yet.").waitFor();
    await page.getByRole("link", { name: "Create workflow" }).click();
    await page.getByRole("button", { name: "Create workflow" }).click();
    await page.getByText("name must be between 1 and 80 characters").first().waitFor();
    await page.getByText("command must be between 1 and 20,000 characters").first().waitFor();
    // The first field that breaks one has the focus.
    await page.locator('[name="name"]:focus').waitFor();
    await page.keyboard.type("Headers");
    await page.getByLabel(/^Command/).fill("make headers YEAR={{ .Parameters.year }}");
    await page.getByRole("button", { name: "Add step" }).click();
    await page.getByLabel("Step type").last().selectOption({ label: "Report outputs" });
    await page.getByLabel("Title", { exact: true }).fill("Files");
    await page.getByLabel(/^Key, such as/).fill("Files!");
    await page.getByLabel("Type", { exact: true }).selectOption({ label: "Whole number" });
    await page.getByLabel("Command", { exact: true }).fill("ls | wc -l");
    await page
      .getByText(/^output key must be snake_case/)
      .first()
      .waitFor();
    await page.getByLabel(/^Key, such as/).fill("files");
    await page
      .getByLabel(/^Clone URLs/)
      .fill("https://git.example.org/team/one.git\nhttps://git.example.org/team/two.git");
    await page.getByRole("button", { name: "Add parameter" }).click();
    await page.getByLabel("Key", { exact: true }).fill("year");
    await page.getByLabel("It has a default").check();
    await page.getByLabel("Default", { exact: true }).fill("2026");
    await look(page);
    await page.getByRole("button", { name: "Create workflow" }).click();
    await page.getByRole("heading", { name: "Headers", level: 1 }).waitFor();
    const { workflow } = await call("GetWorkflow", { workflowId: idOfPage() });
    expect(workflow.spec).toMatchObject({
      action: {
        steps: [
          { task: {} },
          { report: { outputs: [{ key: "files", integer: {}, command: "ls | wc -l" }] } },
        ],
      },
      parameters: [{ key: "year", defaultValue: "2026" }],
      triggers: [{ manual: {}, context: { repositories: { repositoryUrls: { repoUrls: { length: 2 } } } } }],
    });
  });

  test("is changed as text, shows the change first, and keeps what somebody else has changed meanwhile", async () => {
    const { page } = visit;
    const workflowId = idOfPage();
    await page.getByRole("link", { name: "Definition" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Headers of the year");
    await page.getByRole("button", { name: "Edit as text" }).click();
    const field = page.getByLabel("Workflow as text");
    const text = await field.inputValue();
    await field.fill(`${text}}`);
    await page.locator("button:disabled", { hasText: "Review changes" }).waitFor();
    await field.fill(text.replace('"maxParallel": 5', '"maxParallel": 2'));
    // A reload loses nothing, and what is discarded is gone.
    await page.reload();
    await page.getByText("You have unsaved changes.").waitFor();
    await valued(field, text.replace('"maxParallel": 5', '"maxParallel": 2'));
    await look(page);
    await page.getByRole("button", { name: "Discard changes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard changes" }).click();
    await valued(page.getByLabel("Name", { exact: true }), "Headers");
    await page.reload();
    await valued(page.getByLabel("Name", { exact: true }), "Headers");
    await page.getByText("You have unsaved changes").waitFor({ state: "detached" });
    // Also in the form, and while the page is left.
    await page.getByLabel("Name", { exact: true }).fill("Headers of the year");
    await page.getByRole("link", { name: "Executions" }).click();
    await page.getByRole("link", { name: "Definition" }).click();
    await valued(page.getByLabel("Name", { exact: true }), "Headers of the year");
    await page.getByRole("button", { name: "Edit as text" }).click();
    await field.fill(text.replace('"maxParallel": 5', '"maxParallel": 2'));
    await call("UpdateWorkflow", { workflowId, description: "What another person wrote." });
    await page.getByRole("button", { name: "Review changes" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Someone changed the workflow while you were editing.").waitFor();
    const lines = dialog.locator("[data-line-type=change-addition][data-line]");
    // The lines are drawn once more when they have been coloured.
    await until(
      async () => (await lines.allInnerTexts()).map((line) => line.trim()),
      (added) => added.join("\n") === '"name": "Headers of the year",\n"maxParallel": 2,',
    );
    await look(page);
    await dialog.getByRole("button", { name: "Save workflow" }).click();
    await page.getByRole("heading", { name: "Headers of the year", level: 1 }).waitFor();
    // The event of the change may come before the answer to the call, which lets the tab forget the draft.
    await until(
      () => page.evaluate(() => JSON.stringify({ ...sessionStorage })),
      (kept) => !kept.includes("maxParallel"),
    );
    const { workflow } = await call("GetWorkflow", { workflowId });
    expect(workflow).toMatchObject({
      metadata: { name: "Headers of the year", description: "What another person wrote." },
      spec: { action: { limits: { maxParallel: 2 } } },
    });
  });

  test("gets a schedule, whose next instants are shown in a chosen zone", async () => {
    const { page } = visit;
    await page.getByRole("button", { name: "Add trigger" }).click();
    await page.getByLabel("When it starts").last().selectOption({ label: "On a schedule" });
    await page.getByLabel(/^Minute, hour/).fill("30 12 * * *");
    await page.getByLabel("Show times in").selectOption("Asia/Tokyo");
    const instants = page.getByRole("list", { name: "Next instants" }).getByRole("listitem");
    await instants.filter({ hasText: "9:30 PM" }).nth(4).waitFor();
    await page.getByLabel(/^Minute, hour/).fill("61 * * * *");
    await page.locator(".breach").filter({ hasText: "61" }).waitFor();
    await page.getByLabel(/^Minute, hour/).fill("30 12 * * *");
    await page.getByRole("button", { name: "Review changes" }).click();
    await page.getByRole("button", { name: "Save workflow" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("shows the secret of its webhook once, tries it, and delivers again what has arrived", async () => {
    const { page } = visit;
    const workflowId = idOfPage();
    await page.getByRole("link", { name: "Triggers" }).click();
    await page.getByRole("button", { name: "Show secret" }).click();
    const shown = page.locator(".secret");
    const first = await shown.innerText();
    expect(first).toMatch(/^whsec_/);
    // Which shows that it would be found.
    expect(await stateOf(page, visit.context)).toContain(first);
    const close = page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last();
    await close.click();
    await shown.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Make a new secret" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Make a new secret" }).click();
    const second = await shown.innerText();
    expect(second).toMatch(/^whsec_/);
    expect(second).not.toBe(first);
    await close.click();
    await shown.waitFor({ state: "detached" });
    // The page signs with the secret, which it asks for each time.
    await page.getByRole("button", { name: "Deliver" }).click();
    await page.locator(".verdicts").getByText("Started").waitFor();
    await look(page);
    await page.getByRole("link", { name: "Ledger" }).click();
    const rows = page.getByRole("table", { name: "Ledger" }).getByRole("row");
    await rows.filter({ hasText: "Webhook" }).waitFor();
    const secrets = [first, second].map((secret) => secret.replace(/^whsec_/, ""));
    await expectForgotten(page, visit.context, ...secrets);
    await rows.filter({ hasText: "Webhook" }).getByRole("button", { name: "Redeliver" }).click();
    await rows.filter({ hasText: "trigger 1, again" }).waitFor();
    await look(page);
    await page.getByLabel("Verdict", { exact: true }).selectOption({ label: "Bad signature" });
    await page.getByText("No events with this verdict.").waitFor();
    await page.waitForURL(/[?&]verdict=bad-signature/);
    await page.reload();
    await page.getByText("No events with this verdict.").waitFor();
    await page.getByLabel("Verdict", { exact: true }).selectOption({ label: "Started" });
    await rows.filter({ hasText: "trigger 1, again" }).waitFor();
    const { triggerEvents } = await call("ListWorkflowTriggerEvents", {
      filter: { workflowIds: [workflowId] },
    });
    expect(triggerEvents.map(({ verdict }: { verdict: string }) => verdict)).toEqual([
      "TRIGGER_VERDICT_STARTED",
      "TRIGGER_VERDICT_STARTED",
    ]);
    for (const { workflowExecutionId } of triggerEvents) {
      await call("CancelWorkflowExecution", { workflowExecutionId });
    }
  });
});

describe("an execution", () => {
  test("is started elsewhere, and its logs are shown as they come, harmless", async () => {
    const { page } = visit;
    await page.getByRole("button", { name: "Start workflow" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("year").fill("2025");
    await dialog.getByLabel(/^Run elsewhere/).check();
    await dialog
      .getByLabel(/^Clone URLs/)
      .fill(["three", "four"].map((name) => `https://git.example.org/team/${name}.git`).join("\n"));
    await dialog.getByText("2 actions, for three, four").waitFor();
    await look(page);
    await dialog.getByRole("button", { name: "Start workflow" }).click();
    const works = [await runner.leaseOne(), await runner.leaseOne()];
    const [work, other] = works;
    if (!work || !other) throw new Error("there is no work");
    for (const each of works) {
      await succeeded(runner.report(each, { environment: { phase: "ENVIRONMENT_PHASE_RUNNING" } }));
      await succeeded(runner.report(each, { steps: [{ stepIndex: 0, state: "STATE_RUNNING" }] }));
    }
    await page.getByRole("link", { name: "three" }).click();
    const log = page.getByRole("log", { name: "Log of step 1" });
    const first = Buffer.byteLength(HOSTILE);
    const logs = (offset: number, text: string) => ({
      logs: [{ stepIndex: 0, offset: String(offset), data: base64(text) }],
    });
    await succeeded(runner.report(work, logs(0, HOSTILE)));
    await log.getByText("twelve <b>tests</b> ‹202e›gnp", { exact: true }).waitFor();
    await succeeded(runner.report(work, logs(first, "one more\n".repeat(2_000))));
    // The end is followed; of 2,001 lines those in sight are drawn.
    await log.getByText("2001", { exact: true }).waitFor();
    expect(await log.locator(".log-line").count()).toBeLessThan(200);
    await page.getByLabel("Search the log").fill("TWELVE");
    await page.getByText("1 of 1 lines").waitFor();
    await log.getByText("twelve", { exact: true }).waitFor();
    await look(page);
    // Who has gone on from what was found is not called back by new lines.
    const frame = page.locator(".log-lines");
    await frame.evaluate((each) => each.scrollTo({ top: 900 }));
    await log.getByText("60", { exact: true }).waitFor();
    for (const lines of [2_000, 4_000, 6_000, 8_000])
      await succeeded(runner.report(work, logs(first + lines * 9, "one more\n".repeat(2_000))));
    await until(
      () => frame.evaluate((each) => each.scrollHeight),
      (height) => height >= 10_001 * 18,
    );
    expect(await frame.evaluate((each) => each.scrollTop)).toBe(900);
    expect(await log.locator(".log-line").count()).toBeLessThan(200);
    // The end is followed again, until somebody draws the scroll bar up.
    await page.getByLabel("Follow").check();
    await log.getByText("10001", { exact: true }).waitFor();
    await frame.evaluate((each) => each.scrollTo({ top: 5_000 }));
    await page.locator("input:not(:checked)").and(page.getByLabel("Follow")).waitFor();
    const failure = { reason: "command_failed", message: "the command ended with exit status 2" };
    await succeeded(runner.report(other, { steps: [{ stepIndex: 0, state: "STATE_FAILED", failure }] }));
    await succeeded(runner.finish(other));
    const report = [
      { stepIndex: 0, state: "STATE_DONE" },
      { stepIndex: 1, state: "STATE_RUNNING" },
      { stepIndex: 1, state: "STATE_DONE", outputs: { files: base64("12") } },
    ];
    for (const step of report) await succeeded(runner.report(work, { steps: [step] }));
    await succeeded(runner.finish(work));
    await page.getByRole("button", { name: "Retry 1 failed" }).waitFor();
    await page
      .locator(".page-facts")
      .getByText(/^trace [0-9a-f]{32}$/)
      .waitFor();
    // Failures come first; the actions are read apart from their execution.
    await until(
      async () => (await page.locator(".cell").allInnerTexts()).map((name) => name.trim()),
      (names) => names.join() === "four,three",
    );
  });

  test("shows what it put out, as a table and as a file", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Outputs" }).click();
    await page.getByRole("row", { name: "three 12" }).waitFor();
    await look(page);
    const filter = page.getByLabel("Filter the outputs");
    await filter.fill("hree");
    await page.waitForURL(/[?&]q=hree/);
    await page.getByRole("button", { name: "files", exact: true }).click();
    await page.waitForURL(/[?&]sort=files/);
    await page.getByRole("button", { name: "files", exact: true }).click();
    await page.waitForURL(/[?&]order=desc/);
    await page.reload();
    await page.locator("th[aria-sort=descending]", { hasText: "files" }).waitFor();
    await valued(filter, "hree");
    await filter.fill("thirteen");
    await page.getByText("0 of 1", { exact: true }).waitFor();
    await filter.fill("");
    await page.getByText("1 of 1", { exact: true }).waitFor();
    const downloads = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download CSV" }).click();
    const chunks: Buffer[] = [];
    for await (const chunk of await (await downloads).createReadStream()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toMatch(
      /^action_id,action,files\r\n[0-9a-f-]{36},three,12\r\n$/,
    );
    await page.getByRole("link", { name: "Pull requests" }).click();
    await page.getByText("No pull requests have been opened.").waitFor();
    await look(page);
  });

  test("does its failures again, is cancelled, and is among the results of its workflow", async () => {
    const { page, faults } = visit;
    await page.getByRole("button", { name: "Retry 1 failed" }).click();
    await page.getByText("retries the failed actions of an earlier one").waitFor();
    await page.getByRole("link", { name: "four" }).waitFor();
    await page.getByRole("button", { name: "Cancel execution" }).click();
    await page.getByRole("dialog").getByText("1 pending actions").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel execution" }).click();
    await page.getByRole("heading", { level: 1 }).locator("..").getByText("Stopped").waitFor();
    await page.getByRole("link", { name: "Workflows", exact: true }).click();
    await page
      .getByRole("row", { name: /Headers of the year/ })
      .getByText("Stopped")
      .waitFor();
    await look(page);
    await page.getByRole("link", { name: "All executions" }).click();
    await page.getByRole("link", { name: "With failures" }).click();
    await page.getByRole("row", { name: /Partially failed/ }).waitFor();
    await look(page);
    await page.getByRole("link", { name: "Home", exact: true }).click();
    await page.getByText("Failed executions and the last 7 days").click();
    const failed = page.getByRole("region", { name: "Failed executions" });
    await failed.getByRole("row", { name: /Headers of the year.*Partially failed/ }).waitFor();
    const week = page.getByRole("region", { name: "Last 7 days" });
    await week.getByText("executions ended").waitFor();
    await drawnIn(week, 1);
    // Those who see no curve read the same.
    await week.getByText("Executions by day, as a table").click();
    const days = week.getByRole("table").getByRole("row");
    await days
      .filter({ hasText: /^\w{3}/ })
      .first()
      .waitFor();
    expect(await days.count()).toBe(8);
    expect((await days.allInnerTexts()).at(0)).toBe("Day\tsucceeded\tfailed\tstopped");
    expect((await days.allInnerTexts()).at(-1)).toMatch(/^\d+ \w+\t0\t[1-9]\d*\t[1-9]\d*$/);
    await look(page);
    expect(faults).toEqual([]);
  });

  test("of 1,000 actions draws those in sight", async () => {
    const { page, origin, faults } = visit;
    const projectIds: string[] = [];
    for (let hundred = 0; hundred < 10; hundred++) {
      const projects = Array.from({ length: 100 }, (_, at) => ({
        initializer: {
          specs: [{ git: { remoteUri: `https://git.example.org/team/of-${hundred}-${at}.git` } }],
        },
      }));
      const { createdProjects } = await succeeded(
        post(server, "ProjectService/CreateProjects", { projects }),
      );
      projectIds.push(...createdProjects.map(({ id }: { id: string }) => id));
    }
    const { workflow } = await call("CreateWorkflow", {
      name: "A thousand",
      action: { limits: { maxParallel: 1, maxTotal: 1000 }, steps: [{ task: { command: "true" } }] },
    });
    const { workflowExecution } = await call("StartWorkflow", {
      workflowId: workflow.id,
      contextOverride: { projects: { projectIds } },
    });
    // It goes on, as Home says.
    const running = page.getByRole("region", { name: "Running executions" });
    await running.getByRole("row", { name: "A thousand" }).getByText("0 of 1,000").waitFor();
    await running.getByRole("link", { name: "A thousand", exact: true }).click();
    await page.waitForURL(`${origin}/executions/${workflowExecution.id}`);
    await page.getByRole("heading", { name: "Pending 1,000", level: 2 }).waitFor();
    expect(await page.locator(".cell").count()).toBeLessThan(200);
    await page.locator(".board").evaluate((board) => board.scrollTo({ top: board.scrollHeight }));
    await page.getByRole("heading", { name: "Pending 1,000", level: 2 }).waitFor({ state: "detached" });
    expect(await page.locator(".cell").count()).toBeLessThan(200);
    expect(faults).toEqual([]);
  });

  test("is found from every page by the name or id, as projects, workflows and members are", async () => {
    const { page, faults } = visit;
    const executionId = idOfPage();
    const search = page.getByRole("combobox", { name: "Go to" });
    const found = (name: RegExp) => page.getByRole("option", { name });
    await page.keyboard.press("Control+k");
    await search.fill("headers of the year");
    await found(/^Headers of the year Workflow$/).waitFor();
    await found(/^Headers of the year Execution · Partially failed · [0-9a-f]{8}$/).waitFor();
    await found(/^Headers of the year Workflow$/).click();
    await page.getByRole("table", { name: "Executions" }).waitFor();
    await look(page);
    // What the page offers is done from there, too.
    await page.keyboard.press("Control+k");
    await search.fill("Start w");
    await found(/^Start workflow On this page$/).waitFor();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Start workflow" });
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Sharing", exact: true }).click();
    await page.getByText("It is not shared with any group.").waitFor();
    await look(page);
    await page.keyboard.press("Control+k");
    await search.fill("of-9-9");
    await found(/^of-9-9 Project$/).waitFor();
    // Of eleven that have it in their names.
    expect(await found(/ Project$/).count()).toBe(5);
    await look(page);
    await search.fill("admin@localhost");
    await found(/^Administrator Member · admin@localhost$/).click();
    await page.getByRole("row", { name: /^Administrator/ }).waitFor();
    await page.keyboard.press("Control+k");
    await search.fill("Create workf");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Create workflow", level: 1 }).waitFor();
    // Enter waits for what it is meant for.
    await page.keyboard.press("Control+k");
    await search.fill(executionId);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "A thousand", level: 1 }).waitFor();
    expect(idOfPage()).toBe(executionId);
    expect(faults).toEqual([]);
  });
});

describe("an approval step", () => {
  test("names in its form who decides on an approval, and how many of them", async () => {
    const { page, origin } = visit;
    const { group } = await succeeded(post(server, "GroupService/CreateGroup", await groupOf("Deciders")));
    const { workflow } = await call("CreateWorkflow", {
      name: "Asks",
      action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ approval: { message: "Go on?" } }] },
    });
    await page.goto(`${origin}/workflows/${workflow.id}?tab=definition`);
    await page.getByLabel("Who decides", { exact: true }).selectOption({ label: "Named people and groups" });
    await page.getByText("Nobody is selected yet.").waitFor();
    await page.getByLabel("Add a person").fill("nobody@example.org");
    await page.getByText("Nobody else has a matching name or address.").waitFor();
    await page.getByLabel("Add a person").fill("admin@");
    await page.getByRole("button", { name: /^Add Administrator/ }).click();
    await page.getByLabel("Add a group").fill("decid");
    await page.getByRole("button", { name: "Add Deciders" }).click();
    await page.getByRole("list", { name: "Who decides" }).getByText("The group Deciders").waitFor();
    await page.getByLabel("Required approvals").fill("2");
    await look(page);
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Review changes" }).click();
    await dialog.getByRole("button", { name: "Save workflow" }).click();
    // The server knows that nobody else could.
    await dialog.getByText("1 can decide").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.getByLabel("Required approvals").fill("1");
    await page.getByRole("button", { name: "Review changes" }).click();
    await dialog.getByRole("button", { name: "Save workflow" }).click();
    await dialog.waitFor({ state: "detached" });
    const { workflow: saved } = await call("GetWorkflow", { workflowId: workflow.id });
    expect(saved.spec.action.steps[0].approval.deciders).toMatchObject({
      who: "WHO_USERS",
      userIds: [expect.any(String)],
      groupIds: [group.id],
      required: 1,
    });
  });
});
