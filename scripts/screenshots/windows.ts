import type { Page } from "playwright-core";

/** A picture of something that a click opens. */
export interface Window {
  readonly name: string;
  /** The address below which it is opened. */
  readonly path: string;
  /** Opens it, by what a person sees. */
  readonly open: (page: Page) => Promise<void>;
}

/** The addresses of the things on whose pages windows are opened. */
interface Places {
  readonly run: string;
  readonly workflow: string;
  /** A workflow of which an execution goes on. */
  readonly busyWorkflow: string;
}

const click = (page: Page, name: string | RegExp) =>
  page
    .getByRole("button", { name, exact: typeof name === "string" })
    .first()
    .click();
const dialog = (page: Page) => page.getByRole("dialog");

/** Clicks a button, fills what its window asks for, and sends it off. */
async function make(page: Page, verb: string, fields: Readonly<Record<string, string>> = {}): Promise<void> {
  await click(page, verb);
  for (const [label, value] of Object.entries(fields))
    await dialog(page).getByLabel(label, { exact: false }).first().fill(value);
  await dialog(page).getByRole("button", { name: verb, exact: true }).click();
  await dialog(page)
    .getByRole("button", { name: /^Copy / })
    .waitFor();
}

/** Writes a comment on the newest line of a diff. */
async function comment(page: Page): Promise<void> {
  await page
    .getByRole("button", { name: /^Comment on line/ })
    .last()
    .click();
  await page.getByLabel("Comment", { exact: true }).fill("Say it to everybody, not to the world alone.");
}

const DISCARD = "Discard review";

/** The windows, menus and questions of the console: those that start, decide, delete, review, and show a secret once. */
export const windows = ({ run, workflow, busyWorkflow }: Places): readonly Window[] => [
  {
    name: "palette",
    path: "/workflows",
    async open(page) {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to" }).fill("sample");
      await page
        .getByRole("option", { name: /Project$/ })
        .first()
        .waitFor();
    },
  },
  {
    name: "help",
    path: "/",
    async open(page) {
      await click(page, "Help");
      await dialog(page).getByRole("heading", { name: "Help" }).waitFor();
    },
  },
  {
    name: "home-week",
    path: "/",
    async open(page) {
      await page.getByText("Failed executions and the last 7 days").click();
      await page.locator("figure.chart canvas").waitFor();
    },
  },
  {
    name: "organization-server-curves",
    path: "/organization?tab=server",
    async open(page) {
      await page.locator("figure.chart canvas").first().waitFor();
      // Three readings more, so that there is a curve.
      await page.waitForTimeout(15_000);
    },
  },
  {
    name: "start-agent",
    path: "/agents",
    async open(page) {
      await click(page, "Start agent");
      await dialog(page).getByRole("button", { name: "Start agent", exact: true }).waitFor();
    },
  },
  {
    name: "start-workflow",
    path: workflow,
    async open(page) {
      await click(page, "Start workflow");
      await dialog(page)
        .getByText(/^2 actions, for/)
        .waitFor();
    },
  },
  {
    name: "start-workflow-elsewhere",
    path: workflow,
    async open(page) {
      await click(page, "Start workflow");
      await dialog(page)
        .getByLabel(/^Run elsewhere/)
        .check();
    },
  },
  {
    name: "delete-workflow",
    path: busyWorkflow,
    async open(page) {
      await click(page, "More actions for this workflow");
      await page.getByRole("menuitem", { name: "Delete workflow" }).click();
      await dialog(page)
        .getByLabel(/^Cancel the/)
        .waitFor();
    },
  },
  { name: "stop-run", path: run, open: (page) => click(page, "Stop run") },
  {
    name: "run-menu",
    path: run,
    async open(page) {
      await click(page, "More actions for this run");
      await page.getByRole("menuitem", { name: "Set goal" }).waitFor();
    },
  },
  {
    name: "comment",
    path: `${run}?tab=changes`,
    open: comment,
  },
  {
    name: "review",
    path: `${run}?tab=changes`,
    async open(page) {
      await comment(page);
      await click(page, "Add comment");
      await page.getByLabel("Summary").fill("Nearly there.");
      await page.getByRole("button", { name: DISCARD }).waitFor();
    },
  },
  {
    name: "decide-several",
    path: "/approvals",
    async open(page) {
      await page.getByLabel("Select all").check();
      await click(page, /^Decide \d/);
      await dialog(page).getByRole("button", { name: /^Deny/ }).waitFor();
    },
  },
  {
    name: "runner-command",
    path: "/runners",
    open: (page) => make(page, "Create runner", { Name: "Another machine" }),
  },
  {
    name: "invite-link",
    path: "/organization?tab=invites",
    open: (page) => make(page, "Create invite"),
  },
  {
    name: "token-once",
    path: "/account?tab=tokens",
    open: (page) => make(page, "Create token", { Description: "A program" }),
  },
  {
    name: "create-secret",
    path: "/organization?tab=secrets",
    open: (page) => click(page, "Create secret"),
  },
  {
    name: "create-webhook",
    path: "/organization?tab=webhooks",
    open: (page) => click(page, "Create webhook"),
  },
  {
    name: "delete-webhook",
    path: "/organization?tab=webhooks",
    open: (page) => click(page, "Delete"),
  },
  {
    name: "remove-member",
    path: "/organization",
    open: (page) => click(page, "Remove"),
  },
  {
    name: "sign-out-everywhere",
    path: "/account",
    open: (page) => click(page, "Sign out everywhere"),
  },
  {
    name: "import-projects",
    path: "/projects",
    open: (page) => click(page, "Import projects"),
  },
];

/** Shows Home as it is where nothing has been made: its lists answer nothing. @returns what shows them again */
export async function emptied(page: Page): Promise<() => Promise<void>> {
  const lists = /\.(Project|Workflow|Agent|Approval)Service\/List/;
  await page.route(lists, async (route) => {
    const contentType = route.request().headers()["content-type"] ?? "application/json";
    await route.fulfill({ contentType, body: contentType.includes("json") ? "{}" : "" });
  });
  return () => page.unroute(lists);
}

/** Has invites be to another organization, as people see them who are not its members yet. @returns what ends it */
export async function fromElsewhere(page: Page): Promise<() => Promise<void>> {
  const summary = /\/GetOrganizationInviteSummary/;
  await page.route(summary, (route) =>
    route.fulfill({ json: { organizationId: crypto.randomUUID(), organizationName: "Another team" } }),
  );
  return () => page.unroute(summary);
}
