import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Page } from "playwright-core";
import { addScriptedAgent } from "../harness/agent-conversation.ts";
import { post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { addMember, type TestMember } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { signInLink } from "../harness/session.ts";
import { until } from "../harness/until.ts";
import { ACTION, MANUAL } from "../harness/workflow.ts";
import { look } from "./axe.ts";
import { closeAll, openAs, type Visit, valued } from "./browser.ts";

let server: HostedServer;
let visit: Visit;
let organizationId: string;
let ada: TestMember;
beforeAll(async () => {
  server = await startHostedServer();
  await addScriptedAgent(server, join(temporaryFolder(), "received"));
  const { user } = await succeeded(post(server, "UserService/GetAuthenticatedUser", {}));
  organizationId = user.organizationId;
  ada = await addMember(server, { organizationId, email: "ada@example.org" });
  visit = await openAs(server, "admin@localhost");
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

/** Waits until one thing of a page has the focus. */
const focused = (page: Page, name: string) =>
  page.getByRole("button", { name, exact: true }).and(page.locator(":focus")).waitFor();

describe("what another tab has saved", () => {
  test("is replaced in no settings of a project without a word", async () => {
    const { page, context, origin, faults } = visit;
    const { project } = await succeeded(
      post(server, "ProjectService/CreateProject", {
        initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/two.git" } }] },
      }),
    );
    const other = await context.newPage();
    const fields = (tab: Page) => tab.getByLabel("Recommended editors, one per line");
    for (const tab of [page, other]) await tab.goto(`${origin}/projects/${project.id}?tab=editors`);
    await fields(page).fill("code");
    await fields(other).fill("vim");
    await other.getByRole("button", { name: "Save editors" }).click();
    await other.getByText("Saved.").waitFor();
    await page.getByText("Someone changed the editors while you were editing.").waitFor();
    await valued(fields(page), "code");
    await look(page);
    await page.getByRole("button", { name: "Show what is saved" }).click();
    await valued(fields(page), "vim");
    // What a tab shows and has not changed follows what the other one saves.
    await fields(page).fill("vim\ncode");
    await page.getByRole("button", { name: "Save editors" }).click();
    await page.getByText("Saved.").waitFor();
    await valued(fields(other), "vim\ncode");
    const class_ = "Add a class";
    for (const tab of [page, other]) {
      await tab.getByRole("link", { name: "Classes", exact: true }).click();
      await tab.getByLabel(class_).fill("LOCAL");
      await tab.getByRole("button", { name: "Add The local runner of the user who creates it" }).click();
    }
    // Where both have done the same, nothing is in the way of anybody.
    await other.getByRole("button", { name: "Save classes" }).click();
    await other.getByText("Saved.").waitFor();
    await page.locator("button:disabled", { hasText: "Save classes" }).waitFor();
    await page.getByRole("button", { name: "Remove The local runner of the user who creates it" }).click();
    expect(await page.getByText("Someone changed").count()).toBe(0);
    await other.close();
    expect(faults).toEqual([]);
  });

  test("is replaced in no policy without a word", async () => {
    const { page, context, origin, faults } = visit;
    const other = await context.newPage();
    for (const tab of [page, other]) await tab.goto(`${origin}/organization?tab=policies`);
    const most = (tab: Page) => tab.getByLabel("Environments per person (0: no limit)", { exact: true });
    await most(page).fill("7");
    await page.getByLabel("Longest lifetime, in days").fill("9");
    await most(other).fill("5");
    await other.getByRole("button", { name: "Preview the effects" }).click();
    await other.getByRole("button", { name: "Save policies" }).click();
    await other.getByRole("region", { name: "Change" }).waitFor({ state: "detached" });
    const change = page.getByRole("region", { name: "Change" });
    await change.getByText("Saving overwrites that change").waitFor();
    expect(await change.getByRole("listitem").allInnerTexts()).toEqual([
      "Environments per person (0: no limit), now: 5",
    ]);
    await valued(most(page), "7");
    await look(page);
    await change.getByRole("button", { name: "Discard" }).click();
    await page.getByRole("dialog").getByText("Discards your changes to these 2 fields.").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
    await change.waitFor({ state: "detached" });
    await valued(most(page), "5");
    await other.close();
    expect(faults).toEqual([]);
  });

  test("stays in a security policy where this tab has not changed it", async () => {
    const { page, origin, faults } = visit;
    const policy = { metadata: { name: "Tools" }, spec: { executables: { rules: [] } } };
    const { securityPolicy } = await succeeded(
      post(server, "SecurityService/CreateSecurityPolicy", { organizationId, ...policy }),
    );
    await page.goto(`${origin}/organization?tab=security`);
    await page.getByRole("row", { name: /Tools/ }).getByRole("button", { name: "Change" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Tools of the team");
    const rules = [{ path: "curl", effect: "EFFECT_BLOCK" }];
    await succeeded(
      post(server, "SecurityService/UpdateSecurityPolicy", {
        securityPolicyId: securityPolicy.id,
        spec: { executables: { rules } },
      }),
    );
    await dialog.getByText("Someone changed the security policy while you were editing.").waitFor();
    await look(page);
    await dialog.getByRole("button", { name: "Save security policy" }).click();
    await dialog.waitFor({ state: "detached" });
    const { securityPolicies } = await succeeded(post(server, "SecurityService/ListSecurityPolicies", {}));
    expect(securityPolicies).toMatchObject([
      { metadata: { name: "Tools of the team" }, spec: { executables: { rules } } },
    ]);
    expect(faults).toEqual([]);
  });

  test("stays in a webhook where this tab has not changed it", async () => {
    const { page, context, origin, faults } = visit;
    const call = (operation: string, body: object) =>
      succeeded(post(server, `EventSubscriptionService/${operation}`, body));
    const { eventSubscription } = await call("CreateEventSubscription", {
      name: "Chat",
      url: "https://hooks.example.org/one",
      eventKinds: ["project.created"],
    });
    const other = await context.newPage();
    const dialog = (tab: Page) => tab.getByRole("dialog");
    for (const tab of [page, other]) {
      await tab.goto(`${origin}/organization?tab=webhooks`);
      await tab.getByRole("row", { name: /Chat/ }).getByRole("button", { name: "Edit" }).click();
    }
    await dialog(page).getByLabel("Name").fill("Chat of the team");
    await dialog(other)
      .getByLabel(/^Events, one per line/)
      .fill("project.created\nproject.deleted");
    await dialog(other).getByRole("button", { name: "Save" }).click();
    await dialog(other).waitFor({ state: "detached" });
    await dialog(page).getByText("Someone changed the webhook while you were editing.").waitFor();
    await look(page);
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).waitFor({ state: "detached" });
    const { id } = eventSubscription;
    expect(await call("GetEventSubscription", { eventSubscriptionId: id })).toMatchObject({
      eventSubscription: { name: "Chat of the team", eventKinds: ["project.created", "project.deleted"] },
    });
    await other.close();
    expect(faults).toEqual([]);
  });
});

test("changes that were typed outlive a reload, until they are saved or discarded", async () => {
  const { context, origin, faults } = visit;
  const page = await context.newPage();
  const { project } = await succeeded(
    post(server, "ProjectService/CreateProject", {
      name: "Reloaded",
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/three.git" } }] },
    }),
  );
  const workflow = {
    name: "With a year",
    parameters: [{ key: "year", defaultValue: "2026" }],
    action: { ...ACTION, steps: [{ task: { command: "echo {{ .Parameters.year }}" } }] },
    triggers: [MANUAL],
  };
  const made = await succeeded(post(server, "WorkflowService/CreateWorkflow", workflow));
  const unsaved = page.getByText("You have unsaved changes.");
  const discard = async () => {
    await page.getByRole("button", { name: "Discard changes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard changes" }).click();
    await unsaved.waitFor({ state: "detached" });
  };
  const editors = page.getByLabel("Recommended editors, one per line");
  await page.goto(`${origin}/projects/${project.id}?tab=editors`);
  await editors.fill("code");
  await page.reload();
  await unsaved.waitFor();
  await valued(editors, "code");
  await look(page);
  await page.getByRole("button", { name: "Save editors" }).click();
  await page.getByText("Saved.").waitFor();
  await unsaved.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  const name = page.getByLabel("Name", { exact: true });
  await name.fill("Reloaded twice");
  // Also while another tab of the project is shown.
  await page.getByRole("link", { name: "Editors", exact: true }).click();
  await valued(editors, "code");
  await page.getByRole("link", { name: "Settings", exact: true }).click();
  await valued(name, "Reloaded twice");
  await page.reload();
  await valued(name, "Reloaded twice");
  await discard();
  await valued(name, "Reloaded");
  await page.getByRole("link", { name: "Classes", exact: true }).click();
  await page.getByLabel("Add a class").fill("LOCAL");
  await page.getByRole("button", { name: "Add The local runner of the user who creates it" }).click();
  await page.reload();
  await page.getByRole("button", { name: "Remove The local runner of the user who creates it" }).waitFor();
  await discard();
  await page.goto(`${origin}/organization?tab=policies`);
  const limit = page.getByLabel("Environments per person (0: no limit)", { exact: true });
  const saved = await limit.inputValue();
  await limit.fill("7");
  await page.reload();
  await page.getByText("1 field changed").waitFor();
  await valued(limit, "7");
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard", exact: true }).click();
  await valued(limit, saved);
  await page.goto(`${origin}/workflows/${made.workflow.id}`);
  const start = () => page.getByRole("button", { name: "Start workflow" }).first().click();
  await start();
  await page.getByLabel("year", { exact: true }).fill("2027");
  await page.reload();
  await start();
  await valued(page.getByLabel("year", { exact: true }), "2027");
  await page.getByRole("dialog").getByRole("button", { name: "Start workflow" }).click();
  await page.waitForURL(/\/executions\//);
  expect(
    await page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.startsWith("typed "))),
  ).toEqual([]);
  await page.close();
  expect(faults).toEqual([]);
});

test("a window over the page keeps the keyboard in it, and what was typed from a click next to it", async () => {
  const { page, origin, faults } = visit;
  await page.goto(`${origin}/projects`);
  const dialog = page.getByRole("dialog");
  const create = page.getByRole("button", { name: "Create project", exact: true });
  await create.first().focus();
  await page.keyboard.press("Enter");
  // A window that is just drawn takes the focus in the next turn.
  await dialog.locator(":focus").waitFor();
  for (let pressed = 0; pressed < 12; pressed++) {
    await page.keyboard.press("Tab");
    expect(await dialog.evaluate((window) => window.contains(document.activeElement))).toBe(true);
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await focused(page, "Create project");
  await page.keyboard.press("Enter");
  const repository = dialog.getByLabel("Repository URL");
  await repository.fill("https://git.example.org/team/kept.git");
  await page.mouse.click(5, 700);
  await valued(repository, "https://git.example.org/team/kept.git");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await create.first().click();
  await dialog.waitFor();
  // Where nothing was typed, the click closes it.
  await page.mouse.click(5, 700);
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Help", exact: true }).focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await focused(page, "Help");
  // What was chosen in a menu is gone: the focus goes to what has opened that.
  const workflow = { name: "Look around", action: ACTION, triggers: [MANUAL] };
  const made = await succeeded(post(server, "WorkflowService/CreateWorkflow", workflow));
  await page.goto(`${origin}/workflows/${made.workflow.id}`);
  await page.getByRole("button", { name: "More actions for this workflow" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Delete workflow" }).focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await focused(page, "More actions for this workflow");
  expect(faults).toEqual([]);
});

test("a person whose account is blocked learns why at the sign-in, and loses nothing of what was typed", async () => {
  const { page, context, origin, faults } = await openAs(server, "ada@example.org");
  await page.goto(`${origin}/agents`);
  const open = () => page.getByRole("button", { name: "Start agent" }).first().click();
  const message = page.getByRole("dialog").getByLabel("First message");
  await open();
  await message.fill("Look at the headers of all files.");
  const { accountId } = ada;
  await succeeded(post(server, "AccountService/BlockAccount", { accountId, reason: "a test" }));
  const ended = page.getByRole("alert").filter({ hasText: "Your session has ended." });
  await ended.waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Start agent" }).click();
  await page.getByRole("dialog").getByText("You are no longer signed in").waitFor();
  await valued(message, "Look at the headers of all files.");
  await look(page);
  // Also where the window covers the bar.
  const opened = context.waitForEvent("page");
  await page.getByRole("dialog").getByRole("link", { name: "Sign in again in another tab" }).click();
  const second = await opened;
  await second.waitForURL(/\/sign-in\?next=/);
  await second.getByLabel("Access token").fill(ada.token);
  await second.getByRole("button", { name: "Sign in", exact: true }).click();
  await second.getByRole("alert").getByText("the account is blocked", { exact: false }).waitFor();
  // A reload meanwhile leads to the sign-in, and back to what was typed once the block is lifted.
  await page.reload();
  await page.waitForURL(/\/sign-in\?next=/);
  await succeeded(post(server, "AccountService/UnblockAccount", { accountId }));
  await second.goto(`${server.url}/sign-in#${await signInLink(server, "ada@example.org")}`);
  await second.getByRole("button", { name: /^Sign in as/ }).click();
  await second.waitForURL(`${origin}/`);
  await second.close();
  await page.goto(`${origin}/agents`);
  await open();
  await valued(message, "Look at the headers of all files.");
  await until(
    () => page.evaluate(() => document.querySelector("[role=alert]") === null),
    (isGone) => isGone,
  );
  expect(faults).toEqual([]);
});
