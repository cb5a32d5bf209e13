import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { barriers } from "../../scripts/screenshots/barriers.ts";
import { post } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { addMember } from "../harness/member.ts";
import { tampering } from "../harness/raw-data.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { ACTION, MANUAL } from "../harness/workflow.ts";
import { expectNoOverflow, look } from "./axe.ts";
import { closeAll, drawnIn, openAs, type Visit, valued, without } from "./browser.ts";
import { collectAnswers, expectForgotten, stateOf } from "./page-state.ts";

let server: HostedServer;
let visit: Visit;
let organizationId: string;
let answers: ReturnType<typeof collectAnswers>;
/** Every secret that was typed or shown. */
const canaries: string[] = [];
beforeAll(async () => {
  server = await startHostedServer();
  const { body } = await post(server, "UserService/GetAuthenticatedUser", {});
  organizationId = body.user.organizationId;
  await addMember(server, { organizationId, email: "ada@example.org" });
  await plantHostToken();
  visit = await openAs(server, "admin@localhost");
  answers = collectAnswers(visit.page);
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

/** Stores what no page shows at all, and what lists of runners and the audit log tell of without it. */
async function plantHostToken() {
  const { runner } = await succeeded(post(server, "RunnerService/CreateRunner", { name: "In the attic" }));
  const [token, refreshToken] = ["canary-of-a-host-token", "canary-of-a-refresh-token"];
  canaries.push(token, refreshToken);
  await succeeded(
    post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", {
      ...{ runnerId: runner.runnerId, host: "git.example.org", token, refreshToken },
    }),
  );
}

const TABS = [
  "members",
  "groups",
  "invites",
  "accounts",
  "policies",
  "security",
  "secrets",
  "agents",
  "webhooks",
  "audit",
  "events",
  "server",
];
const goTo = async (tab: string) => {
  await visit.page.goto(`${visit.origin}/organization?tab=${tab}`);
  await visit.page.getByRole("heading", { name: "Organization", level: 1 }).waitFor();
};
const dialog = () => visit.page.getByRole("dialog");
/** Closes a dialog that shows a secret, and expects that nothing of it stays in the page. */
async function closeOf(secret: string) {
  canaries.push(secret);
  await dialog().getByRole("button", { name: "Close", exact: true }).last().click();
  await dialog().waitFor({ state: "detached" });
  await leaveAndForget(secret);
}
/** Goes to another part of the page, so that what was drawn last is let go, too, and expects that a secret is. */
async function leaveAndForget(secret: string) {
  await visit.page.getByRole("link", { name: "Events", exact: true }).click();
  await visit.page.getByText("Live", { exact: true }).waitFor();
  await expectForgotten(visit.page, visit.context, secret);
}
/** Tells in a page whether the chosen tab is in sight. */
function isChosenTabShown(): boolean {
  const tab = document.querySelector(".tab[data-active]");
  const [own, row] = [tab, tab?.parentElement].map((each) => each?.getBoundingClientRect());
  return own !== undefined && row !== undefined && own.left >= row.left - 1 && own.right <= row.right + 1;
}
async function createGroup(name: string) {
  const { body } = await post(server, "UserService/GetAuthenticatedUser", {});
  await succeeded(
    post(server, "GroupService/CreateGroup", { organizationId: body.user.organizationId, name }),
  );
}
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
    // The server has it: until then the field shows what was before.
    await valued(row.getByRole("combobox"), String(OrganizationRole.ADMIN));
    const theirs = await openAs(server, "ada@example.org");
    await theirs.page.getByRole("link", { name: "Projects", exact: true }).click();
    await theirs.page.getByRole("heading", { name: "Projects", level: 1 }).waitFor();
    await confirmIn(row, "Suspend");
    await row.getByText("Suspended").waitFor();
    // The session goes with it: their page says so by its stream's end, and reads nothing any more.
    await theirs.page.getByText("Your session has ended.").waitFor({ timeout: 30_000 });
    await theirs.page.reload();
    await theirs.page.waitForURL(`${visit.origin}/sign-in?*`);
    expect(theirs.faults).toEqual([]);
    await theirs.context.close();
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
    await page.getByText("There are no groups yet.").waitFor();
    await page.getByRole("button", { name: "Create group" }).click();
    await dialog().getByLabel("Name").fill("Reviewers");
    await dialog().getByRole("button", { name: "Create group" }).click();
    await page.getByRole("link", { name: "Reviewers" }).click();
    await page.getByText("This group has no members yet.").waitFor();
    await page.getByRole("button", { name: "Add member" }).click();
    await dialog().getByLabel("Add people").fill("admin@");
    await dialog()
      .getByRole("button", { name: /^Add Administrator/ })
      .click();
    await page.getByRole("row", { name: /^Administrator/ }).waitFor();
  });

  test("shows an invite’s link once, and what it is for to the person who opens it", async () => {
    const { page } = visit;
    await goTo("invites");
    await page.getByRole("button", { name: "Create invite" }).click();
    await dialog().getByRole("button", { name: "Create invite" }).click();
    const link = await page.locator(".secret").innerText();
    // Which shows that it would be found.
    expect((await stateOf(page, visit.context)).includes(link)).toBe(true);
    await closeOf(link);
    // The server's answers have no link, but the part after its #.
    canaries.push(new URL(link).hash.slice(1));
    await page.goto(link);
    await page.getByText("You are invited to").waitFor();
    await look(page);
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
    await closeOf(token);
    await goTo("accounts");
    await page.getByRole("link", { name: "nightly" }).click();
    await confirm(/^none/, "Delete token");
    await page.getByText("This service account has no tokens.").waitFor();
    expect((await post(server, "WorkflowService/ListWorkflows", {}, token)).status).toBe(401);
    // Another part of the page is not that of the account.
    await page.getByRole("link", { name: "Secrets", exact: true }).click();
    await page.waitForURL(`${visit.origin}/organization?tab=secrets`);
  });

  test("says what a change of policies refuses before it is made, and then makes it", async () => {
    const { page } = visit;
    const { token } = await addMember(server, { organizationId, email: "bea@example.org" });
    const workflow = { name: "Look around", action: ACTION, triggers: [MANUAL] };
    expect((await post(server, "WorkflowService/CreateWorkflow", workflow, token)).status).toBe(200);
    await goTo("policies");
    await page.getByLabel("Members must start from a repository").check();
    await page.getByLabel("Commands that agents must not run, one per line").fill("curl\nwget");
    await page.getByRole("button", { name: "Preview the effects" }).click();
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
    await page.getByLabel("Commands that agents must not run, one per line").fill("");
    await page.getByLabel("Hosts that isolated work may reach").fill("{");
    await page.getByRole("button", { name: "Preview the effects" }).click();
    await page.getByText("“Hosts that isolated work may reach” is no JSON").waitFor();
    await page.getByLabel("Hosts that isolated work may reach").fill("");
    await page.getByRole("button", { name: "Preview the effects" }).click();
    await page.getByRole("button", { name: "Save policies" }).click();
    await page.getByRole("button", { name: "Save policies" }).waitFor({ state: "detached" });
    expect((await policies()).agentPolicy.commandDenyList).toEqual([]);
  });

  test("says what a change of retention removes before it is made, and what goes afterwards", async () => {
    const { page } = visit;
    // Three events become two days old; the write after them has the server see it.
    await tampering(server.dataDir, (raw) =>
      raw.rows(
        `update event set at = at - 172800000 where organization_id = ? and sequence in
          (select sequence from event where organization_id = ? order by sequence limit 3)`,
        organizationId,
        organizationId,
      ),
    );
    const retention = { triggerEntries: { days: 7, count: 0 } };
    await post(server, "OrganizationService/UpdateOrganizationPolicies", { organizationId, retention });
    await goTo("policies");
    const field = page.getByLabel("Retention of ended resources");
    expect(JSON.parse(await field.inputValue())).toEqual({ triggerEntries: { days: 7 } });
    await field.fill('{"triggerEntries": {"days": 7}, "events": {"days": 1}}');
    await page.getByRole("button", { name: "Preview the effects" }).click();
    const effect = page.getByText(/^Permanently removes 3 events within an hour, \d+ bytes$/);
    const [, bytes = ""] = /(\d+) bytes/.exec(await effect.innerText()) ?? [];
    await page.getByRole("button", { name: "Save policies" }).click();
    await page.getByRole("button", { name: "Save policies" }).waitFor({ state: "detached" });
    const preview = page.getByRole("region", { name: "What retention removes now" });
    const count = preview.getByRole("button", { name: "Count" });
    await count.click();
    await preview.getByRole("row", { name: `Events 1 day this policy 3 ${bytes}`, exact: true }).waitFor();
    for (const row of [
      "Workflow executions forever the installation’s settings 0 0",
      "Entries of ledgers 7 days this policy 0 0",
    ])
      await preview.getByRole("row", { name: row, exact: true }).waitFor();
    expect(await preview.getByText("The count is incomplete.").count()).toBe(0);
    // More than 20,000 of a kind, and a failure, come from a stand-in for the server.
    const operation = "**/*OrganizationService/PreviewRetention";
    await page.route(operation, (route) =>
      route.fulfill({
        json: { kinds: [{ resourceType: "event", kept: { count: 5 }, count: 20_000, bytes: "4096000" }] },
      }),
    );
    await count.click();
    await preview.getByText("The count is incomplete.").waitFor();
    await preview
      .getByRole("row", { name: /^Events the newest 5 the installation’s settings 20,000 4,096,000$/ })
      .waitFor();
    await page.unroute(operation);
    await page.route(operation, (route) =>
      route.fulfill({
        status: 503,
        headers: { "x-request-id": "request-of-a-preview" },
        json: { code: "unavailable", message: "the database is away" },
      }),
    );
    await count.click();
    await preview.getByRole("alert").getByText("The database is away").waitFor();
    await preview.getByRole("alert").getByText("request-of-a-preview").waitFor();
    await page.unroute(operation);
    expect(visit.faults).toEqual([]);
  });

  test("shows how the server is, what it warns of and how far its export is, again and again", async () => {
    const { page, origin } = visit;
    await page.goto(`${origin}/runners`);
    await page.getByRole("link", { name: "Server health" }).click();
    const part = (name: string) => page.getByRole("region", { name, exact: true });
    await part("Readiness").getByText("Ready", { exact: true }).waitFor();
    await part("Readiness")
      .getByRole("row", { name: /^Database takes changes OK/ })
      .waitFor();
    await part("Warnings").getByText("There are no warnings.").waitFor();
    await part("Export of the audit trail").getByText("--audit-file").waitFor();
    await part("Work of the organization")
      .getByRole("row", { name: /^Open approvals 0 approvals/ })
      .waitFor();
    await part("Server and database")
      .getByRole("row", { name: /^Database data: .*[KM]iB/ })
      .waitFor();
    // With the second reading the curves begin.
    const curves = part("Since this page was opened");
    await drawnIn(curves, 3);
    await curves.getByText("Commits, as a table").click();
    await curves
      .getByRole("row", { name: /^\d\d:\d\d:\d\d [\d.]+ m?s [\d.]+ m?s$/ })
      .nth(1)
      .waitFor();
    await look(page);
    await page.getByText("All figures, by metric name").click();
    await page
      .getByRole("row", { name: /^chartroom_database_size data [\d.,]+ [KM]iB Size of the database/ })
      .waitFor();
    // The page asks again by itself.
    const path = "OrganizationService/GetServerHealth";
    const { body } = await post(server, path, { organizationId });
    const reason = "the disk of the data folder has 0 MiB left";
    const figure = (name: string, unit: string, value: number) => ({
      ...{ name, unit, value },
      labels: { chartroom_audit_target: "otlp" },
    });
    const ill = {
      ...body,
      ready: false,
      checks: [{ name: "disk", well: false, reason }],
      server: [],
      organization: [
        figure("chartroom_audit_export_pending", "{row}", 1_204),
        figure("chartroom_audit_export_oldest_age", "s", 3_900),
      ],
    };
    const warnings = [{ check: "audit export", reason: "the target otlp is behind" }];
    await page.route("**/readyz", (route) => route.fulfill({ json: { status: "ok", warnings } }));
    await page.route(`**/*${path}`, (route) => route.fulfill({ json: ill }));
    await part("Readiness").getByText("Not ready", { exact: true }).waitFor();
    await part("Readiness")
      .getByText(`T${reason.slice(1)}. Free some space`)
      .waitFor();
    await part("Warnings").getByText("The target otlp is behind. Check the target").waitFor();
    await page.getByRole("row", { name: "otlp 1,204 rows 1 h 5 min", exact: true }).waitFor();
    await part("Server and database").getByText("The server could not read these figures.").waitFor();
    await look(page);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    expect(visit.faults).toEqual([]);
  });

  test("takes a secret and never shows its value", async () => {
    const { page } = visit;
    await goTo("secrets");
    await page.getByRole("button", { name: "Create secret" }).click();
    await dialog().getByLabel("Name").fill("MODEL_KEY");
    await dialog().getByLabel("Available as").selectOption({ label: "A file" });
    await dialog().getByLabel("Path of the file").fill("/home/dev/.netrc");
    // Of a file the ends of the lines matter.
    const value = "machine one\npassword canary-of-a-secret\n";
    await dialog().getByLabel("Value").fill(value);
    const created = page.waitForRequest("**/*SecretService/CreateSecret");
    await dialog().getByRole("button", { name: "Create secret" }).click();
    expect((await created).postDataJSON().value).toBe(value);
    const row = page.getByRole("row", { name: /MODEL_KEY/ });
    await row.waitFor();
    await row.getByRole("button", { name: "Replace value" }).click();
    await dialog().getByLabel("Value").fill(value.toUpperCase());
    const replaced = page.waitForRequest("**/*SecretService/UpdateSecretValue");
    await dialog().getByRole("button", { name: "Replace value" }).click();
    expect((await replaced).postDataJSON().value).toBe(value.toUpperCase());
    await dialog().waitFor({ state: "detached" });
    canaries.push("canary-of-a-secret");
    await leaveAndForget("canary-of-a-secret");
  });

  test("takes a secret that is put into requests, and never seen by work", async () => {
    const { page } = visit;
    await goTo("secrets");
    await page.getByRole("button", { name: "Create secret" }).click();
    await dialog().getByLabel("Name").fill("API_TOKEN");
    await dialog()
      .getByLabel("Available as")
      .selectOption({ label: "A header of requests, with a placeholder as a variable" });
    await dialog().getByLabel("Hosts, one per line").fill("api.example.org\nother.example.org:8443");
    await dialog().getByLabel("Value").fill("no\u00a0header");
    await dialog().getByRole("button", { name: "Create secret" }).click();
    await dialog().getByText("the value must be of 4 characters of ASCII").waitFor();
    await dialog().getByLabel("Value").fill("Bearer canary-of-a-header");
    await dialog().getByRole("button", { name: "Create secret" }).click();
    await page.getByRole("row", { name: /API_TOKEN.*Authorization.*other\.example\.org:8443/ }).waitFor();
    const { secrets } = (await post(server, "SecretService/ListSecrets", {})).body;
    expect(secrets.at(-1)).toMatchObject({
      name: "API_TOKEN",
      environmentVariable: true,
      credentialProxy: {
        targetHosts: ["api.example.org", "other.example.org:8443"],
        header: "Authorization",
      },
    });
    canaries.push("canary-of-a-header");
    await leaveAndForget("canary-of-a-header");
  });

  test("sends events to a webhook, whose address and secret it forgets, and shows what came of it", async () => {
    const { page } = visit;
    await goTo("webhooks");
    await page.getByText("There are no webhooks yet.").waitFor();
    await page.getByRole("button", { name: "Create webhook" }).click();
    await dialog().getByLabel("Name").fill("Team chat");
    await dialog().getByLabel("Address").fill("https://127.0.0.1:1/canary-of-a-hook");
    await dialog()
      .getByLabel(/^Events, one per line/)
      .fill("project.failed");
    await dialog().getByRole("button", { name: "Create webhook" }).click();
    await dialog().getByText("no event has the kind project.failed").waitFor();
    await dialog()
      .getByLabel(/^Events, one per line/)
      .fill("project.created");
    await dialog().getByRole("button", { name: "Create webhook" }).click();
    await dialog().getByText("Copy the secret now").waitFor();
    const secret = (await dialog().locator("code.secret").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await closeOf(secret);
    canaries.push("canary-of-a-hook");
    await post(server, "ProjectService/CreateProject", {
      name: "Raft",
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/raft.git" } }] },
    });
    await goTo("webhooks");
    await page.getByRole("link", { name: "Team chat" }).click();
    // Nothing is sent to an address that is not public.
    await page
      .getByRole("row", { name: /project\.created.*Not sent: 127\.0\.0\.1:1 is at an address/ })
      .waitFor();
    const asked = page.waitForRequest("**/*EventSubscriptionService/RedeliverEvent");
    await page.getByRole("button", { name: "Redeliver" }).first().click();
    await asked;
    await page.getByRole("link", { name: "All webhooks" }).click();
    await confirm(/Team chat/, "New secret");
    await dialog().getByText("Copy the secret now").waitFor();
    const next = (await dialog().locator("code.secret").textContent()) ?? "";
    expect(next).toMatch(/^whsec_/);
    expect(next).not.toBe(secret);
    await closeOf(next);
    await goTo("webhooks");
    await confirm(/Team chat/, "Delete");
    await page.getByText("There are no webhooks yet.").waitFor();
  });

  test("makes a security policy, assigns it, and deletes it once it is assigned no more", async () => {
    const { page } = visit;
    await goTo("security");
    await page.getByText("There are no security policies yet.").waitFor();
    await page.getByRole("button", { name: "Create security policy" }).click();
    await dialog().getByLabel("Name").fill("No downloads");
    await dialog()
      .getByLabel(/^Blocked programs/)
      .fill("curl\n/usr/bin/../wget");
    await dialog().getByRole("button", { name: "Create security policy" }).click();
    await dialog().getByText("path must be absolute or a bare name").waitFor();
    await dialog()
      .getByLabel(/^Blocked programs/)
      .fill("curl\n/usr/bin/wget");
    await dialog()
      .getByLabel(/^Audited programs/)
      .fill("ssh");
    await dialog().getByRole("button", { name: "Create security policy" }).click();
    const row = page.getByRole("row", { name: /No downloads/ });
    await row.getByText("2 blocked, 1 audited").waitFor();
    await confirmIn(row, "Assign");
    await page.getByText("no isolation enforces another effect").waitFor();
    await row.getByRole("button", { name: "Change" }).click();
    await dialog()
      .getByLabel(/^Audited programs/)
      .fill("");
    await dialog().getByRole("button", { name: "Save security policy" }).click();
    await row.getByText("2 blocked, 0 audited").waitFor();
    await confirmIn(row, "Assign");
    await row.getByText("new environments").waitFor();
    const { securityPolicies } = (await post(server, "SecurityService/ListSecurityPolicies", {})).body;
    const { policies } = (
      await post(server, "OrganizationService/GetOrganizationPolicies", { organizationId })
    ).body;
    expect(policies.securityPolicyId).toBe(securityPolicies[0].id);
    expect(securityPolicies[0].spec.executables.rules).toEqual([
      { path: "curl", effect: "EFFECT_BLOCK" },
      { path: "/usr/bin/wget", effect: "EFFECT_BLOCK" },
    ]);
    await confirmIn(row, "Delete");
    await page.getByText("the organization's policies assign the security policy").waitFor();
    await confirmIn(row, "Unassign");
    await row.getByText("not assigned").waitFor();
    await confirmIn(row, "Delete");
    await page.getByText("There are no security policies yet.").waitFor();
  });

  test("defines an agent for the runners that allow it", async () => {
    const { page } = visit;
    await goTo("agents");
    await page.getByRole("table", { name: "Presets" }).getByText("npm install").first().waitFor();
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
    // Who and when, to the second with the zone: the list has only the age.
    await dialog().getByText("Administrator", { exact: true }).waitFor();
    expect(await dialog().locator("time").textContent()).toMatch(/:\d\d:\d\d\s[AP]M\s\S/);
    await page.keyboard.press("Escape");
    // A name as the list shows it, without its package.
    await page.getByLabel("Action", { exact: true }).fill("GroupService/CreateGroup");
    await page
      .getByRole("row", { name: /CreateGroup/ })
      .first()
      .waitFor();
    expect(await page.getByRole("row", { name: /UpdateOrganizationPolicies/ }).count()).toBe(0);
    // The chain of hashes is separate from the entries: while it is read, where that fails, and where there is none.
    const chain = page.getByRole("region", { name: "Chain of hashes" });
    const answers = [
      {
        status: 403,
        headers: { "x-request-id": "a-call" },
        json: { code: "permission_denied", message: "the chain is not for you" },
      },
      { status: 200, json: { entries: [] } },
    ];
    const begins = Promise.withResolvers<void>();
    await page.route("**/ListAuditLogs", async (route) => {
      if (route.request().postDataJSON().pagination.pageSize !== 1) return route.continue();
      await begins.promise;
      const answer = answers.shift();
      await (answer ? route.fulfill(answer) : route.continue());
    });
    await goTo("audit");
    await chain.getByRole("status", { name: "Loading" }).waitFor();
    begins.resolve();
    await chain.getByText("the chain is not for you").waitFor();
    await chain.getByRole("button", { name: "Try again" }).click();
    await chain.getByText("The chain has no entries.").waitFor();
    await page.unroute("**/ListAuditLogs");
    await goTo("audit");
    await chain.getByText("The newest is").waitFor();
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
    await dialog().getByLabel("Repositories, one per line").fill(lines.join("\n"));
    await dialog().getByRole("button", { name: "Import 3 projects" }).click();
    await dialog().getByText("3 of 3 lines: 2 created, 1 failed.").waitFor();
    await dialog().getByRole("listitem").filter({ hasText: "Line 3 no address" }).waitFor();
    await dialog().getByRole("button", { name: "Import 1 project" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("link", { name: "one", exact: true }).click();
    await page.getByRole("heading", { name: "one", level: 1 }).waitFor();
    await page.getByText("This project has no environment now.").waitFor();
    await page.getByRole("link", { name: "Classes" }).click();
    await page.getByLabel("Add a class").fill("LOCAL");
    await page.getByRole("button", { name: "Add The local runner of the user who creates it" }).click();
    await page.getByRole("button", { name: "Save classes" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Editors" }).click();
    await page.getByLabel("Recommended editors, one per line").fill("code: stable, insiders\nvim");
    await page.getByRole("button", { name: "Save editors" }).click();
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Sharing" }).click();
    await page.getByLabel("Group", { exact: true }).fill("review");
    await page.getByRole("button", { name: "Share with Reviewers" }).click();
    await page.getByRole("row", { name: /Reviewers/ }).waitFor();
    await page.getByText("No other group has a matching name.").waitFor();
    const projectId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    const { project } = (await post(server, "ProjectService/GetProject", { projectId })).body;
    expect(project).toMatchObject({
      environmentClasses: [{ localRunner: true }],
      recommendedEditors: { editors: { code: { versions: ["stable", "insiders"] } } },
    });
    for (const tab of ["Environments", "Classes", "Prebuilds", "Editors", "Settings", "Sharing"]) {
      await page.getByRole("link", { name: tab, exact: true }).click();
      await page.locator(`.tab[aria-current=page]`, { hasText: tab }).waitFor();
      await page.locator(":root:not(:has(.skeleton))").waitFor({ state: "attached" });
      await look(page);
    }
  });

  test("changes what a project is made of, and tells what somebody else has changed meanwhile", async () => {
    const { page, origin } = visit;
    const remoteUri = "https://git.example.org/team/moved.git";
    const { body } = await post(server, "ProjectService/CreateProject", {
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/old.git" } }] },
    });
    const projectId = body.project.id;
    const stored = async () => (await post(server, "ProjectService/GetProject", { projectId })).body.project;
    const save = page.getByRole("button", { name: "Save settings" });
    await page.goto(`${origin}/projects/${projectId}?tab=settings`);
    const remote = page.getByLabel("Repository URL");
    await remote.fill("git example");
    await save.click();
    await page.getByText("remote URI must not contain white space or control characters").first().waitFor();
    await remote.fill(remoteUri);
    await page.getByLabel("Checkout").selectOption({ label: "A branch of the remote" });
    await page.getByLabel("Branch", { exact: true }).fill("stable");
    await page.getByRole("button", { name: "Add source" }).click();
    const second = page.getByRole("group", { name: "Source 2" });
    await second.getByLabel("Source type").selectOption({ index: 1 });
    await second.getByLabel("Address of the page").fill("https://git.example.org/team/docs");
    // What another person saves stays, and is seen where nothing is typed.
    await post(server, "ProjectService/UpdateProject", {
      projectId,
      name: "Theirs",
      automationsFilePath: "a.yaml",
    });
    await page.getByText("Someone changed the project while you were editing.").waitFor();
    await look(page);
    await save.click();
    await page.getByText("Saved.").waitFor();
    await valued(page.getByLabel("Name", { exact: true }), "Theirs");
    expect(await stored()).toMatchObject({
      metadata: { name: "Theirs" },
      initializer: {
        specs: [
          { git: { remoteUri, targetMode: "CLONE_TARGET_MODE_REMOTE_BRANCH", cloneTarget: "stable" } },
          { contextUrl: { url: "https://git.example.org/team/docs" } },
        ],
      },
      automationsFilePath: "a.yaml",
    });
    await post(server, "ProjectService/UpdateProject", { projectId, name: "Theirs again" });
    await valued(page.getByLabel("Name", { exact: true }), "Theirs again");
    const remove = second.getByRole("button", { name: "Remove source 2" });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.locator(':root[data-mantine-color-scheme="dark"]').waitFor({ state: "attached" });
    expect(await remove.evaluate((button) => getComputedStyle(button).color)).toBe("rgb(255, 138, 128)");
    await page.emulateMedia({ colorScheme: "light" });
    await remove.click();
    await save.click();
    await second.waitFor({ state: "detached" });
    await page.getByText("Saved.").waitFor();
    expect((await stored()).initializer.specs).toHaveLength(1);
  });

  test("has prebuilds of a project made, and cancels and deletes them", async () => {
    const { page, origin } = visit;
    const runner = await registerRunner(server, { name: "prebuilds" });
    const { environmentClassId } = runner;
    const { body } = await post(server, "ProjectService/CreateProject", {
      initializer: { specs: [{ git: { remoteUri: "https://git.example.org/team/prebuilt.git" } }] },
    });
    await page.goto(`${origin}/projects/${body.project.id}?tab=prebuilds`);
    await page.getByText("This project has no prebuilds.").waitFor();
    await page.getByRole("button", { name: "Configure prebuilds" }).click();
    await dialog().getByLabel("Build prebuilds").check();
    await dialog().getByRole("button", { name: "Add Class of prebuilds" }).click();
    await dialog().getByLabel("Schedule").selectOption({ label: "Every day at 04:00 UTC" });
    await dialog().getByLabel("Time limit in minutes (empty: 60)").fill("4");
    await dialog().getByRole("button", { name: "Save prebuild configuration" }).click();
    await dialog().getByText("must be greater than or equal to 300s").first().waitFor();
    await dialog().getByLabel("Time limit in minutes (empty: 60)").fill("90");
    await look(page);
    await dialog().getByRole("button", { name: "Save prebuild configuration" }).click();
    await dialog().waitFor({ state: "detached" });
    const configured = await post(server, "ProjectService/GetProject", { projectId: body.project.id });
    expect(configured.body.project.prebuildConfiguration).toMatchObject({
      enabled: true,
      environmentClassIds: [environmentClassId],
      timeout: "5400s",
      trigger: { dailySchedule: { hourUtc: 4 } },
    });
    await page.getByRole("button", { name: "Start prebuild" }).click();
    await dialog().getByRole("button", { name: "For Class of prebuilds" }).click();
    await dialog().waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: /Class of prebuilds/ });
    await row.getByText("Waiting for its runner").waitFor();
    await look(page);
    await confirmIn(row, "Cancel");
    await row.getByText("Cancelled").waitFor();
    const operation = "**/*PrebuildService/DeletePrebuild";
    await page.route(operation, (route) =>
      route.fulfill({
        status: 503,
        headers: { "x-request-id": "request-of-a-deletion" },
        json: { code: "unavailable", message: "the database is away" },
      }),
    );
    await confirmIn(row, "Delete");
    await page.getByRole("alert").getByText("The database is away").waitFor();
    await page.unroute(operation);
    const { projectId, spec } = { projectId: body.project.id, spec: {} };
    await post(server, "PrebuildService/CreatePrebuild", { projectId, spec });
    await row.getByText("Waiting for its runner").waitFor();
    await confirmIn(row, "Cancel");
    await row.getByText("Cancelled").waitFor();
    await page.getByRole("alert").waitFor({ state: "detached" });
    await confirmIn(row, "Delete");
    await page.getByText("This project has no prebuilds.").waitFor();
    // The project stays while the runner has not stopped.
    await post(server, "PrebuildService/CreatePrebuild", { projectId, spec });
    const work = await runner.leaseOne();
    await post(server, "ProjectService/DeleteProject", { projectId });
    await page.getByText("Being deleted", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Start prebuild" }).waitFor({ state: "detached" });
    await row.getByText("Being deleted").waitFor();
    await succeeded(runner.finish(work, "OUTCOME_STOPPED"));
    await succeeded(runner.finish(await runner.leaseOne()));
  });

  test("tells of events as they happen", async () => {
    const { page } = visit;
    await goTo("events");
    await page.getByText("Live", { exact: true }).waitFor();
    const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/team/live.git" } }] };
    await post(server, "ProjectService/CreateProject", { initializer });
    const created = page.getByRole("row", { name: /Project create/ });
    await created.waitFor();
    // What comes while one reads further down waits above it.
    for (let each = 1; each <= 30; each++) await createGroup(`Of the events ${each}`);
    await page
      .getByRole("row", { name: /Group create/ })
      .nth(29)
      .waitFor();
    await created.scrollIntoViewIfNeeded();
    await page.mouse.wheel(0, 10_000);
    const top = () => created.evaluate((row) => row.getBoundingClientRect().top);
    const news = page.getByRole("button", { name: "2 new", exact: true });
    // To the end, since one comes into sight further up: what is measured before the wheel has turned moves with it.
    await until(
      () => page.evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY),
      (leftBelow) => leftBelow < 1,
    );
    const before = await top();
    for (const name of ["Later", "Last"]) await createGroup(name);
    await news.waitFor();
    expect(await top()).toBe(before);
    await news.click();
    await page
      .getByRole("row", { name: /Group create/ })
      .nth(31)
      .waitFor();
    await news.waitFor({ state: "detached" });
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
      await without(page, ".skeleton");
      expect([tab, await barriers(page)]).toEqual([tab, []]);
      await expectNoOverflow(page);
      await page.waitForFunction(isChosenTabShown);
      const folder = process.env.CONSOLE_SCREENSHOTS;
      if (folder) await page.screenshot({ path: `${folder}/organization-${tab}-${colorScheme}.png` });
    }
    // Also where the window becomes narrow while the page is open.
    await page.setViewportSize({ width: 1280, height: 800 });
    // Without a frame between them two changes are none.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    await page.setViewportSize({ width, height: 800 });
    await page.waitForFunction(isChosenTabShown);
    expect(visit.faults).toEqual([]);
  });

  test("has been answered no secret but by the operation that issued it", async () => {
    expect(canaries.length).toBe(10);
    expect(canaries.every((canary) => canary.length > 10)).toBe(true);
    const issuing = /\/(Create|Rotate)/;
    const shown = (await answers()).filter(([operation]) => !issuing.test(operation));
    expect(shown.length).toBeGreaterThan(20);
    expect(shown.filter(([, text]) => canaries.some((canary) => text.includes(canary)))).toEqual([]);
  });

  test("holds no secret on any of its parts, nor on the pages of runners and of the account", async () => {
    const { page, context, origin } = visit;
    const addresses = [...TABS.map((tab) => `/organization?tab=${tab}`), "/runners", "/account?tab=tokens"];
    for (const address of addresses) {
      await page.goto(origin + address);
      await without(page, ".skeleton");
      await expectForgotten(page, context, ...canaries);
    }
    // Which shows that what a page has would be found.
    expect(await stateOf(page, context)).toContain("admin@localhost");
  });
});
