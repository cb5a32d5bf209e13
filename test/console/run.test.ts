import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  addScriptedAgent,
  closeConversations,
  conversationOf,
  receivedInputs,
} from "../harness/agent-conversation.ts";
import { approvals, decide } from "../harness/approvals.ts";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { addMember } from "../harness/member.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import {
  type HostedServer,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";
import { signInLink } from "../harness/session.ts";
import { until } from "../harness/until.ts";
import { look } from "./axe.ts";
import { closeAll, openAs, type Visit, valued } from "./browser.ts";

let server: HostedServer;
let received: string;
let visit: Visit;
beforeAll(async () => {
  const origin = bareRepository(temporaryFolder(), { "app.txt": "one\ntwo\nthree\n" }, "hello.git");
  received = join(temporaryFolder(), "received");
  // It traces, and sends none of it.
  const traced = ["--otlp-traces-endpoint", "http://127.0.0.1:9", "--trace-ratio", "0"];
  server = await startHostedServer({ args: [...LONG_LEASES, ...traced] });
  await addScriptedAgent(server, received);
  await startRegisteredRunner(server);
  await succeeded(
    post(server, "ProjectService/CreateProject", { name: "Hello", initializer: repository(origin.url) }),
  );
  const { user } = (await post(server, "UserService/GetAuthenticatedUser", {})).body;
  const { organizationId } = user;
  await addMember(server, { organizationId, email: "robin@example.org", administrator: true });
  visit = await openAs(server, "admin@localhost");
});
afterAll(async () => {
  closeConversations();
  await closeAll();
  await stopRunners();
  await stopAll();
});

/** An image of one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Sends a message: when the one before is on its way no more, and until the server has taken it. */
const say = async (words: string) => {
  const field = visit.page.getByLabel("Message to the agent");
  await field.fill(words);
  await visit.page.locator(".composer button[type=submit]:not([data-loading])").waitFor();
  await field.press("Control+Enter");
  await valued(field, "");
};

/** Sends a message from elsewhere. */
const sendFrom = (agentExecutionId: string, content: string) =>
  succeeded(
    post(server, "AgentService/SendToAgentExecution", {
      agentExecutionId,
      userInput: { inputs: [{ text: { content } }] },
    }),
  );

/**
 * Waits until a run waits for input and its runner has looked at what the last turn changed: where the next one writes
 * while it still looks, both are shown as one.
 */
const untilLookedAt = async (id: string) => {
  const run = conversationOf(server, id);
  await run.untilIdle();
  const [{ environmentId }] = (await run.get()).status.usedEnvironments;
  await succeeded(post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true }));
};

const conversation = () => visit.page.getByRole("log");

describe("a run", () => {
  test("is started with a project and a first message, and talked with", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Agents", exact: true }).click();
    await page.getByText("No run is active.").waitFor();
    await look(visit.page);
    await page.getByRole("button", { name: "Start agent" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Project", { exact: true }).fill("hel");
    await dialog.getByRole("button", { name: "Choose Hello" }).click();
    await dialog.getByText("The project Hello").waitFor();
    await dialog
      .getByLabel("First message")
      .fill("write app.txt one / zwei / three\necho <b>Good</b> morning");
    await dialog.getByLabel("Name").fill("A run of the console");
    await dialog.getByLabel("First message").press("Control+Enter");
    await page.getByRole("heading", { name: "A run of the console", level: 1 }).waitFor();
    // What an agent says stays text.
    await conversation().getByText("<b>Good</b> morning", { exact: true }).waitFor();
    await page.getByText("Waiting for input").waitFor();
    await page
      .locator(".page-facts")
      .getByText(/^trace [0-9a-f]{32}$/)
      .waitFor();
    await say("count");
    await conversation().getByText("2", { exact: true }).waitFor();
    await look(visit.page);
  });

  test("keeps the time after a name in a right-to-left script in its place", async () => {
    const page = await visit.context.newPage();
    await page.route("**/GetUser", (route) =>
      route.fulfill({ json: { user: { id: route.request().postDataJSON().userId, name: "דנה" } } }),
    );
    // In an hour, since "now" has no number, which would change its place.
    await page.clock.setFixedTime(Date.now() + 3_600_000);
    await page.goto(visit.page.url());
    const facts = page.locator(".page-facts");
    const name = await facts.getByText("דנה", { exact: true }).boundingBox();
    const time = await facts.getByText("1 h ago", { exact: true }).boundingBox();
    await page.close();
    expect(time?.x).toBeGreaterThan((name?.x ?? 0) + (name?.width ?? 0));
  });

  test("asks, and goes on with the decision that a person makes in its page", async () => {
    const { page } = visit;
    await say("ask build execute make all");
    // It is where it was asked.
    const card = conversation().getByRole("region", { name: /^Approval/ });
    await card.waitFor();
    await card.getByText("make all").first().waitFor();
    await page
      .getByRole("link", { name: /Approvals/ })
      .first()
      .getByText("1")
      .waitFor();
    await look(visit.page);
    const queue = page.getByRole("region", { name: "Queue" });
    for (const words of ["echo first", "echo second"]) {
      await say(words);
      await queue.getByText(words).waitFor();
    }
    await queue.getByRole("button", { name: "Move up" }).click();
    await queue.locator(".queued").first().getByText("echo second").waitFor();
    // What it read after its order has been read.
    const moveUp = queue.locator("button:enabled", { hasText: "Move up" });
    await moveUp.waitFor();
    // By the pointer a message is put before the one that it is dropped on.
    const message = (words: string) => queue.locator(".queued").filter({ hasText: words });
    for (const [moved, before] of [
      ["echo first", "echo second"],
      ["echo second", "echo first"],
    ] as const) {
      await message(moved).dragTo(message(before));
      await queue.locator(".queued").first().getByText(moved).waitFor();
      await moveUp.waitFor();
    }
    // Another administrator takes a message out, in another browser; this page has not read of it yet.
    const release = Promise.withResolvers<void>();
    await page.route("**/ListAgentInputs", async (route) => {
      await release.promise;
      await route.continue();
    });
    const other = await openAs(server, "robin@example.org");
    await other.page.goto(page.url());
    const theirs = other.page.getByRole("region", { name: "Queue" });
    const taken = theirs.locator(".queued").filter({ hasText: "echo first" });
    await taken.getByRole("button", { name: "Delete" }).click();
    await taken.waitFor({ state: "detached" });
    const refused = page.waitForResponse("**/SendToAgentExecution");
    await moveUp.click();
    await refused;
    // The refusal is shown with the queue as it is now.
    release.resolve();
    await queue.getByText(/^The queue changed before your action/).waitFor();
    await queue.getByText("echo first").waitFor({ state: "detached" });
    await page.unroute("**/ListAgentInputs");
    await queue.locator(".queued:only-of-type").waitFor();
    expect(other.faults).toEqual([]);
    await other.context.close();
    await card.getByLabel(/^Reason/).fill("only a test");
    await page.reload();
    await valued(card.getByLabel(/^Reason/), "only a test");
    // While the server has not answered, the page says so, and nothing is decided twice.
    const approve = card.getByRole("button", { name: "Approve" });
    const answered = Promise.withResolvers<void>();
    await page.route("**/DecideApproval", async (route) => {
      await answered.promise;
      await route.abort();
    });
    await approve.click();
    await card.getByRole("status").getByText("Sending your decision").waitFor();
    expect([
      await approve.isDisabled(),
      await card.getByRole("button", { name: "Deny" }).isDisabled(),
    ]).toEqual([true, true]);
    await look(page);
    // Why it failed is there before the page has been read again, however slowly that goes.
    const reread = Promise.withResolvers<void>();
    await page.route("**/ListApprovals", async (route) => {
      await reread.promise;
      await route.continue();
    });
    answered.resolve();
    await card.getByRole("alert").waitFor();
    await page.unroute("**/DecideApproval");
    await card.locator("button:enabled", { hasText: "Approve" }).click();
    await card.waitFor({ state: "detached" });
    reread.resolve();
    await until(
      () => page.evaluate(() => JSON.stringify({ ...sessionStorage })),
      (stored) => !stored.includes("only a test"),
    );
    await conversation()
      .getByRole("group")
      .filter({ hasText: "Asked: make all" })
      .getByText("Approved", { exact: true })
      .waitFor();
    await page.unroute("**/ListApprovals");
    const { body } = await post(server, "ApprovalService/ListApprovals", {});
    expect(
      body.approvals.map(({ state, decisions }: { state: string; decisions: { reason: string }[] }) => [
        state,
        decisions.map(({ reason }) => reason),
      ]),
    ).toEqual([["APPROVAL_STATE_APPROVED", ["only a test"]]]);
  });

  test("is denied something in the inbox, by somebody who has found it there", async () => {
    const { page } = visit;
    const address = page.url();
    await say("ask ship execute make release");
    await page.getByRole("region", { name: /^Approval/ }).waitFor();
    // What is in the queue can be delivered while the agent works.
    const queue = page.getByRole("region", { name: "Queue" });
    await say("echo meanwhile");
    await queue.getByRole("button", { name: "Deliver now" }).click();
    await queue.waitFor({ state: "detached" });
    await conversation().getByText("echo meanwhile").waitFor();
    await page
      .getByRole("link", { name: /Approvals/ })
      .first()
      .click();
    await page.getByRole("heading", { name: "Approvals", level: 1 }).waitFor();
    await page.locator(".row-link").waitFor();
    await look(visit.page);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Deny" }).waitFor();
    await look(visit.page);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByText("Denied", { exact: true }).waitFor();
    await page.goto(address);
    await page.getByText("Waiting for input").waitFor();
  });

  test("and others are decided together, each with what came of it", async () => {
    const { page, origin } = visit;
    const address = page.url();
    const start = (content: string) =>
      succeeded(post(server, "AgentService/StartAgent", { userInput: { inputs: [{ text: { content } }] } }));
    for (const words of ["ask a execute make a", "ask b execute make b", "ask c execute make c"])
      await start(words);
    await start("question d Which colour?");
    await page.goto(`${origin}/approvals`);
    const row = (title: string) => page.getByRole("row", { name: `Choose ${title}` });
    for (const title of ["make a", "make b", "make c"]) await row(title).waitFor();
    // A question needs an answer of its own.
    expect(await row("Which colour?").getByRole("checkbox").isDisabled()).toBe(true);
    await look(page);
    // All are pending, so no column says so.
    expect(await page.getByRole("columnheader").allTextContents()).toEqual([
      "",
      ...["What", "Source", "Kind", "Requested by", "Requested"],
    ]);
    // By the keyboard: the list has the newest first, in whatever order they have asked.
    await page.getByRole("link", { name: "make a", exact: true }).focus();
    await page.keyboard.press("x");
    await page.getByText("1 selected.").waitFor();
    await page.getByRole("checkbox", { name: "Select all" }).check();
    await page.getByText("3 selected.").waitFor();
    await row("make c").getByRole("checkbox").uncheck();
    await page.getByRole("button", { name: "Decide 2", exact: true }).click();
    const dialog = page.getByRole("dialog");
    const one = (title: string) => dialog.getByRole("listitem", { name: title, exact: true });
    const pending = await approvals(server, "APPROVAL_STATE_PENDING");
    const of = (title: string) => pending.find((each) => each.title === title);
    for (const title of ["make a", "make b"]) await one(title).getByText(of(title).digest).waitFor();
    await look(page);
    // Somebody else is faster with one of them.
    await decide(server, of("make b"), { decision: "DECISION_DENY" });
    await dialog.getByLabel(/^Reason/).fill("both are harmless");
    await dialog.getByRole("button", { name: "Approve 2" }).click();
    await one("make a").getByText("Approved", { exact: true }).waitFor();
    await one("make b").getByRole("alert").waitFor();
    await dialog.getByText("1 of 2 decided, 1 failed.").waitFor();
    await look(page);
    await dialog.getByRole("button", { name: "Done" }).click();
    await dialog.waitFor({ state: "detached" });
    await row("make a").waitFor({ state: "detached" });
    await row("make c").waitFor();
    const [decided] = (await approvals(server)).filter(({ title }) => title === "make a");
    expect(decided.decisions.map(({ reason }: { reason: string }) => reason)).toEqual(["both are harmless"]);
    await page.goto(address);
    await page.getByText("Waiting for input").waitFor();
  });

  test("gets a review of the lines that it has changed", async () => {
    const { page } = visit;
    const runId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await page.getByRole("link", { name: "Changes" }).click();
    await page.waitForURL(/[?&]digest=[0-9a-f]{64}/);
    const seen = new URL(page.url()).searchParams.get("digest") ?? "";
    await page
      .getByRole("navigation", { name: "Files" })
      .getByRole("button", { name: /^app\.txt/ })
      .click();
    await page
      .getByRole("region", { name: /^(.*\/)?app\.txt$/ })
      .and(page.locator(":focus"))
      .waitFor();
    await page.getByRole("link", { name: "Show split" }).click();
    // What a line was is next to what it is.
    const place = async (column: string, text: string) => {
      const line = page.locator(`diffs-container [data-${column}] [data-line]`, { hasText: text });
      return (await line.boundingBox())?.y;
    };
    // The lines are drawn once more when they have been coloured.
    const bothPlaces = () => Promise.all([place("additions", "zwei"), place("deletions", "two")]);
    await until(bothPlaces, ([added, deleted]) => added !== undefined && added === deleted);
    await page.getByRole("button", { name: "Comment on line 2", exact: true }).click();
    await page.getByLabel("Comment", { exact: true }).fill("echo in German");
    await page.getByRole("button", { name: "Add comment" }).click();
    await page.getByLabel("Summary").fill("Nearly there.");
    await look(visit.page);
    // The server keeps it: another page, and one that is loaded again, go on with it.
    await page.getByRole("link", { name: "Conversation" }).click();
    await page.getByRole("link", { name: "Changes" }).click();
    await page.getByText("Review with 1 comment").waitFor();
    await page.reload();
    await page.getByText("echo in German").waitFor();
    await valued(page.getByLabel("Summary"), "Nearly there.");
    // What could not be kept is not sent as it was before.
    await page.route("**/UpdateAgentReviewDraft", (route) => route.abort());
    await page.getByLabel("Summary").fill("Not at all.");
    await page.getByRole("button", { name: "Send to agent" }).click();
    await page.getByRole("region", { name: "Review", exact: true }).getByRole("alert").waitFor();
    // The alert may be of the draft that is kept while one types: what is sent keeps it once more, before it gives up.
    await page.locator(".review button:not([data-loading])", { hasText: "Send to agent" }).waitFor();
    await page.unroute("**/UpdateAgentReviewDraft");
    await page.getByLabel("Summary").fill("Nearly there.");
    await page.getByLabel("Summary").press("Control+Enter");
    await page.getByRole("region", { name: "Review", exact: true }).waitFor({ state: "detached" });
    await page.getByRole("status").filter({ hasText: "The review was sent to the agent." }).waitFor();
    // What somebody reads stays when the agent changes more, until they ask for it.
    await page.waitForURL((url) => url.searchParams.get("digest") === seen);
    const earlier = page.url();
    await untilLookedAt(runId);
    await sendFrom(runId, "write more.txt four");
    await page.getByText(/^A newer diff is available/).waitFor();
    expect(await page.getByRole("region", { name: /more\.txt$/ }).count()).toBe(0);
    await look(page);
    await page.getByRole("button", { name: "Show newer diff" }).click();
    await page.getByRole("region", { name: /more\.txt$/ }).waitFor();
    await page.waitForURL((url) => url.searchParams.get("digest") !== seen);
    await page.goto(earlier);
    await page.getByText(/^This link refers to an earlier diff/).waitFor();
    await page.getByLabel("Compared with").selectOption({ label: "Since the last turn" });
    await page.waitForURL(/[?&]base=turn/);
    // The diff of before, which has both files, is there until the page of the address is drawn.
    await page.getByRole("region", { name: /app\.txt$/ }).waitFor({ state: "detached" });
    await page.getByRole("region", { name: /more\.txt$/ }).waitFor();
    expect(await page.getByRole("region", { name: /app\.txt$/ }).count()).toBe(0);
    await page.getByRole("link", { name: "Conversation" }).click();
    // The answer of the agent, which has recorded what it got before.
    await conversation().getByText("in German", { exact: true }).waitFor();
    await conversation().getByText("I have read the review.", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Changes" }).click();
    const sent = page.getByRole("region", { name: "Sent reviews" });
    await sent.getByText("echo in German").waitFor();
    await page.getByRole("link", { name: "Network" }).click();
    await page.getByText("No connections yet.").waitFor();
    await page.getByText("its commands may do on the machine").waitFor();
    await look(page);
    await page.getByRole("link", { name: "Sharing" }).click();
    await page.getByText("It is not shared with any group.").waitFor();
    await look(page);
    await page.getByRole("link", { name: "Conversation" }).click();
    const words = receivedInputs(runId, received)
      .map((input) => input.words)
      .join("\n");
    expect(words).toContain("Nearly there.");
    expect(words).toContain("echo in German");
    const { body } = await post(server, "AgentReviewService/ListAgentReviewDrafts", {
      agentExecutionId: runId,
    });
    expect(body.drafts).toEqual([]);
  });

  test("shows a push with its pull request from the order over an approval until it is opened", async () => {
    const { page } = visit;
    const conversationUrl = page.url();
    await page.getByRole("link", { name: "Changes" }).click();
    // The server's part is in test/e2e/push.test.ts: here its answers are said, each state for as long as it is looked at.
    const approvalId = "019a0000-0000-7000-8000-000000000001";
    const done = {
      state: "STATE_DONE",
      branch: "fix",
      commit: "c0ffee".repeat(6),
      outcome: "OUTCOME_CREATED",
    };
    const pullRequest = { title: "Count in German", url: "https://git.example.org/team/hello/pulls/7" };
    const asked = Promise.withResolvers<void>();
    const answers = [
      { push: { state: "STATE_GOING_ON", progress: { stage: "STAGE_SENDING", percent: 40 } } },
      { push: { state: "STATE_WAITING_FOR_APPROVAL", approvalId } },
      { push: done, pullRequest: { id: approvalId, pullRequest } },
    ];
    const orders: unknown[] = [];
    await page.route("**/OpenPullRequest", async (route) => {
      orders.push(route.request().postDataJSON());
      if (orders.length === 2) await asked.promise;
      await route.fulfill({ json: answers[orders.length - 1] });
    });
    const approval = { id: approvalId, kind: "APPROVAL_KIND_PUSH", state: "APPROVAL_STATE_PENDING" };
    await page.route("**/GetApproval", (route) => route.fulfill({ json: { approval } }));
    const push = page.getByRole("region", { name: "Push" });
    await push.getByLabel("Branch", { exact: true }).fill("fix");
    await push.getByLabel("Title of the pull request").fill(pullRequest.title);
    await push.getByRole("button", { name: "Open pull request" }).click();
    await push.getByText("Opening a pull request").waitFor();
    await push.getByText("Sending … 40 %").waitFor();
    asked.resolve();
    await push.getByText("Pending", { exact: true }).waitFor();
    await look(page);
    // It is there after a reload, too, and once it is approved the same order carries it out.
    approval.state = "APPROVAL_STATE_APPROVED";
    await page.reload();
    await push.getByRole("button", { name: "Push now" }).click();
    await push.getByText("Pull request opened").waitFor();
    await push.getByRole("link", { name: pullRequest.title }).waitFor();
    expect(orders).toEqual([orders[0], orders[0], orders[0]]);
    await page.unroute("**/OpenPullRequest");
    // Its own page tells an approval from a push that was carried out, and shows as text what it cannot read.
    await page.goto(new URL(`/approvals/${approvalId}`, page.url()).href);
    const pushed = page.locator("dt", { hasText: "Pushed" }).locator("xpath=following-sibling::dd[1]");
    await pushed.getByText(/^not yet: .* “Push now”/).waitFor();
    Object.assign(approval, { carriedOutAt: new Date().toISOString() });
    await page.reload();
    await pushed.locator("time").waitFor();
    await page.unroute("**/GetApproval");
    await page.goto(conversationUrl);
  });

  test("gets an image with a message, and a goal", async () => {
    const { page } = visit;
    const image = Buffer.from(PIXEL, "base64");
    await page.getByLabel("Images to send").setInputFiles([
      { name: "pixel.png", mimeType: "image/png", buffer: image },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no image") },
    ]);
    await page.getByText("notes.txt is no PNG or JPEG image.").waitFor();
    await page.getByRole("img", { name: "pixel.png" }).waitFor();
    await say("image");
    await conversation().getByText(`image/png of ${image.length} bytes`).waitFor();
    await page.getByRole("list", { name: "Images of the message" }).waitFor({ state: "detached" });
    // What was sent while its page was left is kept no more.
    const answered = Promise.withResolvers<void>();
    await page.route("**/SendToAgentExecution", async (route) => {
      await answered.promise;
      await route.continue();
    });
    const message = page.getByLabel("Message to the agent");
    const stored = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }));
    await message.fill("echo sent and left");
    await until(stored, (text) => text.includes("sent and left"));
    const sending = page.waitForRequest("**/SendToAgentExecution");
    await message.press("Control+Enter");
    await sending;
    await page.getByRole("link", { name: "Network" }).click();
    await message.waitFor({ state: "detached" });
    answered.resolve();
    await until(stored, (text) => !text.includes("sent and left"));
    await page.unroute("**/SendToAgentExecution");
    await page.getByRole("link", { name: "Conversation" }).click();
    await conversation().getByText("sent and left", { exact: true }).waitFor();
    expect(await message.inputValue()).toBe("");
    await page.getByRole("button", { name: "More actions for this run" }).click();
    await page.getByRole("menuitem", { name: "Set goal" }).click();
    await page.getByLabel("Objective").fill("All headers say 2026");
    await page.getByRole("dialog").getByRole("button", { name: "Set goal" }).click();
    const goal = page.getByRole("region", { name: "Goal" });
    await goal.getByText("All headers say 2026").waitFor();
    await goal.getByRole("button", { name: "Pause goal" }).click();
    await goal.getByText("Paused").waitFor();
    await look(page);
    await goal.getByRole("button", { name: "Remove goal" }).click();
    await goal.waitFor({ state: "detached" });
  });

  test("loses nothing of what is typed, and is resumed after its end", async () => {
    const { page, context, origin, faults } = visit;
    await page.getByLabel("Message to the agent").fill("echo not sent yet");
    const images = page.getByRole("list", { name: "Images of the message" });
    const choose = (name: string, buffer: Buffer) =>
      page.getByLabel("Images to send").setInputFiles([{ name, mimeType: "image/png", buffer }]);
    await choose("kept.png", Buffer.from(PIXEL, "base64"));
    await images.getByRole("img", { name: "kept.png" }).waitFor();
    // What a tab has no room for, the page says.
    await choose("large.png", Buffer.alloc(4_194_304));
    await page.getByText("if you reload the page before sending").waitFor();
    await images.getByRole("button", { name: "Remove large.png" }).click();
    await page.getByText("if you reload the page before sending").waitFor({ state: "detached" });
    await page.reload();
    await images.getByRole("img", { name: "kept.png" }).waitFor();
    await images.getByRole("button", { name: "Remove kept.png" }).click();
    await images.waitFor({ state: "detached" });
    const message = page.getByLabel("Message to the agent");
    await valued(message, "echo not sent yet");
    await conversation()
      .getByText(/^image\/png of/)
      .waitFor();
    await page.getByRole("button", { name: "Stop run" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop run" }).click();
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await page.getByText("continues an earlier run").waitFor();
    await conversation().getByText("not sent yet", { exact: true }).waitFor();
    // Nor when the session ends while one types.
    await message.fill("echo typed before");
    const { sessions } = await succeeded(post(server, "UserService/ListSessions", {}));
    for (const { id: sessionId } of sessions)
      await succeeded(post(server, "UserService/RevokeSession", { sessionId }));
    await message.press("Control+Enter");
    const ended = page.getByRole("alert").filter({ hasText: "Your session has ended." });
    await ended.waitFor();
    const failed = page.locator(".composer").getByRole("alert");
    await failed.getByText("You are no longer signed in. Sign in and try again.").waitFor();
    await message.fill("echo typed before and after");
    const second = await context.newPage();
    await second.goto(`${server.url}/sign-in#${await signInLink(server, "admin@localhost")}`);
    await second.getByRole("button", { name: /^Sign in as/ }).click();
    await second.waitForURL(`${origin}/`);
    await second.close();
    await ended.waitFor({ state: "detached" });
    await valued(message, "echo typed before and after");
    await message.press("Control+Enter");
    await valued(message, "");
    expect(faults).toEqual([]);
  });

  test("shows nobody else what was typed, and forgets it when its person signs out", async () => {
    const { page, context, origin } = visit;
    const run = page.url();
    const message = page.getByLabel("Message to the agent");
    await message.fill("of one person alone");
    await page.reload();
    await valued(message, "of one person alone");
    // The session ends, and somebody else begins one in the same tab.
    await context.clearCookies();
    await page.goto(`${server.url}/sign-in#${await signInLink(server, "robin@example.org")}`);
    await page.getByRole("button", { name: /^Sign in as/ }).click();
    await page.waitForURL(`${origin}/`);
    await page.goto(run);
    await message.waitFor();
    expect(await message.inputValue()).toBe("");
    const stored = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }));
    await message.fill("of the other one");
    await until(stored, (text) => text.includes("of the other one"));
    await page.goto(`${origin}/account`);
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.waitForURL(`${origin}/sign-in`);
    expect(await stored()).not.toContain("of the other one");
  });

  test("of 2,000 blocks draws at most 200, and earlier ones when they are asked for", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    const goOn = join(temporaryFolder(), "go-on");
    const agentId = await addTalker(goOn);
    const userInput = { inputs: [{ text: { content: "talk" } }] };
    const { agentExecutionId } = await succeeded(
      post(server, "AgentService/StartAgent", { agentId, userInput }),
    );
    await page.goto(`${origin}/agents/${agentExecutionId}`);
    const talk = page.getByRole("log");
    const drawn = () => talk.locator("> *").count();
    await talk.getByText("words 2000", { exact: true }).waitFor();
    expect(await drawn()).toBeLessThan(200);
    await talk.getByRole("button", { name: /^Show \d+ earlier$/ }).waitFor();
    // A call tells how long it runs; what comes while somebody reads further up leaves them there, and is counted.
    const build = talk.getByRole("group").filter({ hasText: "Build" });
    await build.getByText("Running", { exact: true }).waitFor();
    await build.getByText(/^\d+ (s|min)\b/).waitFor();
    // The end is in sight before it is left: at the top there would be nothing to scroll.
    await page.waitForFunction(() => window.scrollY > 0);
    await page.evaluate(
      () =>
        new Promise((done) => {
          window.addEventListener("scroll", done, { once: true });
          window.scrollTo(0, 0);
        }),
    );
    writeFileSync(goOn, "");
    await page.getByRole("button", { name: "3 new", exact: true }).waitFor();
    await talk.getByText("New", { exact: true }).waitFor();
    await build.getByText("Done", { exact: true }).waitFor();
    await look(page);
    await page.getByRole("button", { name: "3 new", exact: true }).click();
    await page.getByRole("button", { name: "3 new", exact: true }).waitFor({ state: "detached" });
    await page.getByText("Waiting for input").waitFor();
    // What the keyboard goes to is not under the field; in a low window, as an enlarged one is, that leaves room to read.
    const foot = page.locator(".talk-foot");
    await page.evaluate(() => window.scrollTo(0, 0));
    await build.locator("summary").focus();
    const [step, field] = [await build.locator("summary").boundingBox(), await foot.boundingBox()];
    if (!step || !field) throw new Error("they are not drawn");
    expect(step.y).toBeGreaterThan(48);
    expect(step.y + step.height).toBeLessThan(field.y);
    await page.setViewportSize({ width: 640, height: 400 });
    await page.waitForFunction(() => {
      const foot = document.querySelector(".talk-foot");
      return foot && getComputedStyle(foot).position === "static";
    });
    await page.setViewportSize({ width: 1280, height: 800 });
    // Who comes later is shown the end, too.
    await page.reload();
    await talk.getByText("words 2000", { exact: true }).waitFor();
    await build.getByText(/^(< )?\d+ (s|min)\b/).waitFor();
    expect(await drawn()).toBeLessThan(200);
    expect(await talk.getByText("words 1", { exact: true }).count()).toBe(0);
    const before = await drawn();
    await talk.getByRole("button", { name: /^Show \d+ earlier$/ }).click();
    await talk.getByText(`words ${2000 - before}`, { exact: true }).waitFor();
    expect(faults).toEqual([]);
  });
});

/**
 * Adds an agent that answers its first message with 2,000 texts, builds until a file is there, and says three words more.
 * @returns its id
 */
async function addTalker(goOn: string): Promise<string> {
  const program = `while IFS= read -r line; do case $line in *'"type":"stop"'*) exit ;; *'"type":"user_input"'*)
    id=\${line##*'"id":"'}; printf '{"type":"seen","id":"%s"}\\n' "\${id%%\\"*}"
    for i in {1..2000}; do printf '{"type":"text","content":"words %s\\\\n"}\\n' $i; done
    printf '{"type":"tool_call","id":"b","title":"Build","kind":"execute","state":"running"}\\n'
    until [ -e "$0" ]; do sleep 0.1; done
    printf '{"type":"tool_call","id":"b","state":"done"}\\n'
    for i in 1 2 3; do printf '{"type":"text","content":"late %s\\\\n"}\\n' $i; done; printf '{"type":"turn_done"}\\n' ;;
    esac; done`;
  const command = JSON.stringify(["bash", "-c", program, goOn]);
  const options = ["--command", command, "--form", "json-lines", "--data-dir", server.dataDir];
  const added = await runHostedCommand(["agent", "add", "talker", ...options]);
  expect([added.code, added.stderr]).toEqual([0, ""]);
  const { agents } = await succeeded(post(server, "AgentService/ListAgents", {}));
  return agents.find(({ name }: { name: string }) => name === "talker").id;
}
