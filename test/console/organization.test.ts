import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { post } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { ACTION, MANUAL } from "../harness/workflow.ts";
import { barriers } from "./axe.ts";
import { closeAll, openAs, type Visit } from "./browser.ts";

let server: HostedServer;
let visit: Visit;
let organizationId: string;
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "UserService/GetAuthenticatedUser", {});
  organizationId = body.user.organizationId;
  await addMember(server, { organizationId, email: "ada@example.org" });
  visit = await openAs(server, "admin@localhost");
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

const TABS = ["members", "groups", "invites", "accounts", "policies", "secrets", "agents", "audit", "events"];
const goTo = async (tab: string) => {
  await visit.page.goto(`${visit.origin}/organization?tab=${tab}`);
  await visit.page.getByRole("heading", { name: "Organization", level: 1 }).waitFor();
};
const dialog = () => visit.page.getByRole("dialog");
const confirm = (row: RegExp, label: string) => confirmIn(visit.page.getByRole("row", { name: row }), label);
async function confirmIn(row: ReturnType<Visit["page"]["getByRole"]>, label: string) {
  await row.getByRole("button", { name: label }).click();
  await dialog().getByRole("button", { name: label }).click();
}

describe("the organization", () => {
  test("changes the role of a member, suspends and removes them", async () => {
    await goTo("members");
    const row = visit.page.getByRole("row", { name: /ada@example\.org/ });
    await row.getByRole("combobox").selectOption({ label: "Administrator" });
    await confirmIn(row, "Suspend");
    await row.getByText("Suspended").waitFor();
    const listed = async () =>
      (await post(server, "OrganizationService/ListMembers", { organizationId })).body.members.find(
        ({ email }: { email: string }) => email === "ada@example.org",
      );
    expect(await listed()).toMatchObject({
      role: "ORGANIZATION_ROLE_ADMIN",
      status: "USER_STATUS_SUSPENDED",
    });
    await confirmIn(row, "Remove");
    await row.waitFor({ state: "detached" });
    expect(await listed()).toBeUndefined();
  });

  test("makes a group with a member", async () => {
    const { page } = visit;
    await goTo("groups");
    await page.getByText("There is no group yet.").waitFor();
    await page.getByRole("button", { name: "Create group" }).click();
    await dialog().getByLabel("Name").fill("Reviewers");
    await dialog().getByRole("button", { name: "Create group" }).click();
    await page.getByRole("link", { name: "Reviewers" }).click();
    await page.getByText("Nobody is in this group yet.").waitFor();
    await page.getByRole("button", { name: "Add member" }).click();
    await dialog().getByLabel("Who").selectOption({ index: 1 });
    await dialog().getByRole("button", { name: "Add member" }).click();
    await page.getByRole("row", { name: /^Administrator/ }).waitFor();
  });

  test("shows an invite’s link once, and what it is for to whoever opens it", async () => {
    const { page } = visit;
    await goTo("invites");
    await page.getByRole("button", { name: "Create invite" }).click();
    await dialog().getByRole("button", { name: "Create invite" }).click();
    const link = await page.locator(".secret").innerText();
    await dialog().getByRole("button", { name: "Close", exact: true }).last().click();
    expect(await page.content()).not.toContain(link);
    await page.goto(link);
    await page.getByText("You are invited to").waitFor();
  });

  test("makes a service account, and shows its token once", async () => {
    const { page } = visit;
    await goTo("accounts");
    await page.getByRole("button", { name: "Create service account" }).click();
    await dialog().getByLabel("Name").fill("nightly");
    await dialog().getByRole("button", { name: "Create service account" }).click();
    await page.getByRole("link", { name: "nightly" }).click();
    await page.getByRole("button", { name: "Create token" }).click();
    await dialog().getByRole("button", { name: "Create token" }).click();
    const token = await page.locator(".secret").innerText();
    expect((await post(server, "WorkflowService/ListWorkflows", {}, token)).status).toBe(200);
    await dialog().getByRole("button", { name: "Close", exact: true }).last().click();
    expect(await page.content()).not.toContain(token);
    await confirm(/^none/, "Delete token");
    await page.getByText("This service account has no token.").waitFor();
    expect((await post(server, "WorkflowService/ListWorkflows", {}, token)).status).toBe(401);
  });

  test("says what a change of policies refuses before it is made, and then makes it", async () => {
    const { page } = visit;
    const { token } = await addMember(server, { organizationId, email: "bea@example.org" });
    const workflow = { name: "Look around", action: ACTION, triggers: [MANUAL] };
    expect((await post(server, "WorkflowService/CreateWorkflow", workflow, token)).status).toBe(200);
    await goTo("policies");
    await page.getByLabel("Members start from repositories only").check();
    await page.getByLabel("Commands that agents must not execute, one a line").fill("curl\nwget");
    await page.getByRole("button", { name: "Show what it does" }).click();
    await page.getByText("Refuses StartWorkflow for 1 workflow").waitFor();
    await page.getByText("Look around").waitFor();
    const policies = async () =>
      (await post(server, "OrganizationService/GetOrganizationPolicies", { organizationId })).body.policies;
    expect((await policies()).disableFromScratch).toBe(false);
    await page.getByRole("button", { name: "Save policies" }).click();
    await page.getByRole("button", { name: "Save policies" }).waitFor({ state: "detached" });
    expect(await policies()).toMatchObject({
      disableFromScratch: true,
      agentPolicy: { commandDenyList: ["curl", "wget"] },
    });
    await page.getByLabel("Commands that agents must not execute, one a line").fill("");
    await page.getByLabel("Hosts that isolated work may reach").fill("{");
    await page.getByRole("button", { name: "Show what it does" }).click();
    await page.getByText("“Hosts that isolated work may reach” is no JSON").waitFor();
    await page.getByLabel("Hosts that isolated work may reach").fill("");
    await page.getByRole("button", { name: "Show what it does" }).click();
    await page.getByRole("button", { name: "Save policies" }).click();
    await page.getByRole("button", { name: "Save policies" }).waitFor({ state: "detached" });
    expect((await policies()).agentPolicy.commandDenyList).toEqual([]);
  });

  test("takes a secret and never shows its value", async () => {
    const { page } = visit;
    await goTo("secrets");
    await page.getByRole("button", { name: "Create secret" }).click();
    await dialog().getByLabel("Name").fill("MODEL_KEY");
    await dialog().getByLabel("Value").fill("canary-of-a-secret");
    await dialog().getByRole("button", { name: "Create secret" }).click();
    await page.getByRole("row", { name: /MODEL_KEY/ }).waitFor();
    expect(await page.content()).not.toContain("canary-of-a-secret");
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    expect(kept).not.toContain("canary-of-a-secret");
  });

  test("defines an agent for the runners that allow it", async () => {
    const { page } = visit;
    await goTo("agents");
    await page.getByRole("button", { name: "Define agent" }).click();
    await dialog().getByRole("textbox", { name: "Name", exact: true }).fill("Planner");
    await dialog().getByRole("textbox", { name: "Program", exact: true }).fill("planner");
    await dialog().getByLabel("Arguments").fill("--acp\n--calm");
    await dialog().getByLabel("Environment variables").fill("TONE=calm=1");
    await dialog().getByRole("button", { name: "Define agent" }).click();
    await dialog().getByText("no runner of the organization allows").waitFor();
    const runner = await registerRunner(server);
    await succeeded(runner.call("Heartbeat", { apiAgents: true }));
    await dialog().getByRole("button", { name: "Define agent" }).click();
    const row = page.getByRole("row", { name: /Planner/ });
    await row.getByText("planner --acp --calm").waitFor();
    const { agents } = (await post(server, "AgentService/ListAgents", {})).body;
    expect(agents[0].definition.variables).toEqual({ TONE: "calm=1" });
    await confirmIn(row, "Delete");
    await row.waitFor({ state: "detached" });
  });

  test("filters the audit log by its address, and shows what an entry changed", async () => {
    const { page, origin } = visit;
    await page.goto(
      `${origin}/organization?tab=audit&action=service.v1.OrganizationService/UpdateOrganizationPolicies`,
    );
    await page
      .getByRole("row", { name: /UpdateOrganizationPolicies/ })
      .first()
      .waitFor();
    expect(await page.getByRole("row", { name: /CreateGroup/ }).count()).toBe(0);
    await page
      .getByRole("button", { name: /^Entry/ })
      .last()
      .click();
    await dialog().getByText("disableFromScratch").waitFor();
    await goTo("audit");
    await page.getByText("The newest is").waitFor();
  });

  test("imports projects by their lines, and says what each runs on and who may use it", async () => {
    const { page, origin } = visit;
    await page.goto(`${origin}/projects`);
    await page.getByRole("button", { name: "Import projects" }).click();
    const lines = [
      "# of the team",
      "https://git.example.org/team/one.git",
      "no address",
      "",
      "https://git.example.org/team/two.git",
    ];
    await dialog().getByLabel("Repositories, one a line").fill(lines.join("\n"));
    await dialog().getByRole("button", { name: "Import 3 projects" }).click();
    await dialog().getByText("3 of 3 lines: 2 created, 1 failed.").waitFor();
    await dialog().getByRole("listitem").filter({ hasText: "Line 3 no address" }).waitFor();
    await dialog().getByRole("button", { name: "Import 1 project" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("link", { name: "one", exact: true }).click();
    await page.getByRole("heading", { name: "one", level: 1 }).waitFor();
    await page.getByText("No environment is made of it now.").waitFor();
    await page.getByRole("link", { name: "Classes" }).click();
    await page.getByLabel("Class to add").selectOption({ label: "The local runner of whoever makes it" });
    await page.getByRole("button", { name: "Add class" }).click();
    await page.getByRole("button", { name: "Save classes" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Editors" }).click();
    await page.getByLabel("Recommended editors, one a line").fill("code: stable, insiders\nvim");
    await page.getByRole("button", { name: "Save editors" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Sharing" }).click();
    await page.getByRole("button", { name: "Share", exact: true }).waitFor();
    const projectId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const { project } = (await post(server, "ProjectService/GetProject", { projectId })).body;
    expect(project).toMatchObject({
      environmentClasses: [{ localRunner: true }],
      recommendedEditors: { editors: { code: { versions: ["stable", "insiders"] } } },
    });
    expect(await barriers(page)).toEqual([]);
  });

  test("tells of events as they happen", async () => {
    const { page } = visit;
    await goTo("events");
    await page.getByText("Live").waitFor();
    const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/team/live.git" } }] };
    await post(server, "ProjectService/CreateProject", { initializer });
    await page.getByRole("row", { name: /Project create/ }).waitFor();
    expect(visit.faults).toEqual([]);
  });

  test.each([
    ["light", 1280],
    ["dark", 380],
  ] as const)("has no barriers in the %s theme, %i pixels wide", async (colorScheme, width) => {
    const { page } = visit;
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    for (const tab of TABS) {
      await goTo(tab);
      await page.locator(":root:not(:has(.skeleton))").waitFor({ state: "attached" });
      expect([tab, await barriers(page)]).toEqual([tab, []]);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect([tab, overflow]).toEqual([tab, 0]);
      const folder = process.env.CONSOLE_SCREENSHOTS;
      if (folder) await page.screenshot({ path: `${folder}/organization-${tab}-${colorScheme}.png` });
    }
    expect(visit.faults).toEqual([]);
  });
});
