import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  addScriptedAgent,
  closeConversations,
  receivedInputs,
  startConversation,
} from "../harness/agent-conversation.ts";
import { post, repository } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { expireAllLeases, LONG_LEASES } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { startHostedRunner, startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { ACTION, MANUAL } from "../harness/workflow.ts";
import { look } from "./axe.ts";
import { closeAll, openAs, type Visit, valued } from "./browser.ts";

let server: HostedServer;
let received: string;
let visit: Visit;
let projectId: string;
let workflowId: string;
const call = (operation: string, body: object) => succeeded(post(server, operation, body));
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  received = join(temporaryFolder(), "received");
  await addScriptedAgent(server, received);
  const { user } = await call("UserService/GetAuthenticatedUser", {});
  await addMember(server, { organizationId: user.organizationId, email: "bea@example.org" });
  const initializer = repository("https://git.example.org/team/tools.git");
  const { project } = await call("ProjectService/CreateProject", { name: "Tools", initializer });
  projectId = project.id;
  const { workflow } = await call("WorkflowService/CreateWorkflow", {
    name: "Nightly",
    action: ACTION,
    triggers: [MANUAL],
  });
  workflowId = workflow.id;
  visit = await openAs(server, "admin@localhost");
});
afterAll(async () => {
  closeConversations();
  await closeAll();
  await stopRunners();
  await stopAll();
});

test("members see no button that the server refuses them, and why", async () => {
  const member = await openAs(server, "bea@example.org");
  for (const [path, button, why] of [
    ["/runners", "Create runner", "Only administrators can create runners."],
    [
      `/projects/${projectId}`,
      "Delete project",
      "Only its creator and administrators can change or delete it.",
    ],
    [
      `/workflows/${workflowId}?tab=triggers`,
      "Show secret",
      "Only the workflow's creator and administrators can see the secret.",
    ],
  ] as const) {
    await member.page.goto(member.origin + path);
    await member.page.getByText(why).waitFor();
    expect([path, await member.page.getByRole("button", { name: button }).count()]).toEqual([path, 0]);
    await visit.page.goto(visit.origin + path);
    await visit.page.getByRole("button", { name: button }).waitFor();
    expect([path, await visit.page.getByText(why).count()]).toEqual([path, 0]);
  }
  await look(member.page);
  expect([...member.faults, ...visit.faults]).toEqual([]);
  await member.context.close();
});

test("a runner is paused, goes on, and is deleted", async () => {
  const { page, origin, faults } = visit;
  await registerRunner(server, { name: "In the cellar" });
  await page.goto(`${origin}/runners`);
  const row = page.getByRole("row", { name: /^In the cellar/ });
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("Paused", { exact: true }).waitFor();
  await look(page);
  await row.getByRole("button", { name: "Resume" }).click();
  await row.getByText("Active", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await row.waitFor({ state: "detached" });
  expect(faults).toEqual([]);
});

test("Ctrl-K opens the palette while somebody types, and leaves what was typed", async () => {
  const { page, origin } = visit;
  await page.goto(`${origin}/projects`);
  const search = page.getByLabel("Search projects");
  await search.fill("Too");
  await search.press("Control+k");
  const palette = page.getByRole("combobox", { name: "Go to" });
  await palette.waitFor();
  // The palette has a field, too, in which the same keys close it.
  await palette.press("Control+k");
  await palette.waitFor({ state: "detached" });
  await page.locator("input:focus").and(search).waitFor();
  await page.keyboard.type("ls j?");
  expect(await search.inputValue()).toBe("Tools j?");
});

test("what cannot be loaded leaves the page as it is, and comes once the server answers", async () => {
  const { page, context, origin, faults } = await openAs(server, "admin@localhost");
  const scripts = /\/assets\/(Runners|Palette)-[^/]+\.js$/;
  const isHome = (url: URL) => url.pathname === "/";
  await page.goto(`${origin}/agents`);
  await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  await page.route(scripts, (route) => route.abort());
  await page.route(isHome, (route) => route.abort());
  await page.keyboard.press("Control+k");
  await page.getByText("This could not be loaded because the server did not answer.").waitFor();
  await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  const runners = page.getByRole("link", { name: "Runners", exact: true });
  // Pages are loaded as soon as the pointer is over their links.
  const asked = page.waitForEvent("requestfailed", (request) => /Runners-/.test(request.url()));
  await runners.hover();
  await asked;
  await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
  await runners.click();
  await page.getByRole("heading", { name: "This page could not be loaded" }).waitFor();
  await runners.waitFor();
  await look(page);
  await page.setViewportSize({ width: 380, height: 800 });
  const label = page.getByRole("button", { name: "Try again" }).getByText("Try again");
  const [shown, whole] = await label.evaluate(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth]);
  expect(shown).toBe(whole);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.unroute(scripts);
  await page.unroute(isHome);
  await page.getByRole("heading", { name: "Runners", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).waitFor();
  expect(faults.filter((fault) => !fault.includes("The page could not be loaded."))).toEqual([]);
  await context.close();
});

test("the state of a webhook's ledger is in the address", async () => {
  const { page, origin, faults } = visit;
  const { eventSubscription } = await call("EventSubscriptionService/CreateEventSubscription", {
    name: "Team chat",
    url: "https://127.0.0.1:1/hook",
    eventKinds: ["project.created"],
  });
  await page.goto(`${origin}/organization?tab=webhooks&id=${eventSubscription.id}`);
  const state = page.getByLabel("State", { exact: true });
  await state.selectOption({ label: "Delivered" });
  await page.waitForURL(/[?&]state=delivered/);
  await page.reload();
  await valued(state, "delivered");
  await state.selectOption({ label: "Every state" });
  await page.waitForURL((url) => !url.searchParams.has("state"));
  expect(faults).toEqual([]);
});

test("the mode of a new run is told in words that a narrow window does not cut", async () => {
  const { page, origin } = visit;
  await page.setViewportSize({ width: 380, height: 800 });
  await page.goto(`${origin}/agents`);
  await page.getByRole("button", { name: "Start agent" }).click();
  const mode = page.getByRole("dialog").getByLabel("Mode");
  await mode.selectOption({ label: "On its own" });
  await page.getByText("Plans and implements without asking in between.").waitFor();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.keyboard.press("Escape");
});

test("the browser's Back leads to the tab before, and then to the page before", async () => {
  const { page, origin, faults } = visit;
  await page.goto(`${origin}/projects`);
  await page.getByRole("link", { name: "Tools", exact: true }).click();
  for (const tab of ["Editors", "Sharing"]) await page.getByRole("link", { name: tab, exact: true }).click();
  const chosen = (tab: string) => page.locator(".tab[aria-current=page]", { hasText: tab }).waitFor();
  await chosen("Sharing");
  await page.goBack();
  await chosen("Editors");
  await page.getByLabel("Recommended editors, one per line").waitFor();
  await page.goBack();
  await chosen("Environments");
  await page.goBack();
  await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor();
  await page.goForward();
  await chosen("Environments");
  expect(faults).toEqual([]);
});

test("a turn that was lost with its runner is asked for again, and the run is deleted once it has stopped", async () => {
  const { page, origin, faults } = visit;
  const runner = await startRegisteredRunner(server);
  const conversation = await startConversation(server, { holdAfterLostTurn: true });
  await conversation.say("long", "slow 1000\necho done");
  await conversation.untilOutput("step 1");
  await runner.kill();
  await expireAllLeases(server);
  await startHostedRunner(server, { stateDir: runner.stateDir });
  await conversation.untilPhase("WAITING_FOR_INPUT");
  await page.goto(`${origin}/agents/${conversation.id}`);
  const lost = page.getByRole("region", { name: "Lost turn" });
  await lost.getByText("Queued messages are not delivered until someone decides.").waitFor();
  await look(page);
  await lost.getByRole("button", { name: "Try again" }).click();
  await lost.waitFor({ state: "detached" });
  await until(
    async () => receivedInputs(conversation.id, received).map(({ id }) => id),
    (ids) => ids.join() === "long,long",
  );
  await page.getByRole("button", { name: "Stop run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop run" }).click();
  await page.getByRole("button", { name: "Stop run" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "More actions for this run" }).click();
  await page.getByRole("menuitem", { name: "Delete run" }).click();
  await page.getByRole("dialog").getByText("and its conversation").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Delete run" }).click();
  await page.waitForURL(`${origin}/agents`);
  const answer = await post(server, "AgentService/GetAgentExecution", { agentExecutionId: conversation.id });
  expect(answer.status).toBe(404);
  expect(faults).toEqual([]);
});

test("no name, however long, makes a page wider than its window", async () => {
  const { page, origin, faults } = visit;
  const name = "W".repeat(80);
  const remoteUri = `https://git.example.org/${"long".repeat(30)}/${name}.git`;
  const { project } = await call("ProjectService/CreateProject", {
    name,
    initializer: repository(remoteUri),
  });
  const { workflow } = await call("WorkflowService/CreateWorkflow", {
    name,
    description: name.repeat(3),
    action: ACTION,
    triggers: [MANUAL],
  });
  const { agentExecutionId } = await call("AgentService/StartAgent", {
    name: "M".repeat(100),
    userInput: { inputs: [{ text: { content: `echo ${name.repeat(5)}` } }] },
  });
  const paths = [
    "/",
    "/agents",
    `/agents/${agentExecutionId}`,
    "/projects",
    `/projects/${project.id}`,
    `/projects/${project.id}?tab=settings`,
    "/workflows",
    `/workflows/${workflow.id}`,
    `/workflows/${workflow.id}?tab=definition`,
  ];
  for (const path of paths) {
    await page.goto(origin + path);
    await page.locator("h1").waitFor();
    await page.locator(":root:not(:has(.skeleton))").waitFor({ state: "attached" });
    await look(page);
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("WWW");
  await page
    .getByRole("option", { name: /Project$/ })
    .first()
    .waitFor();
  await look(page);
  expect(faults).toEqual([]);
});
