import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { addScriptedAgent, closeConversations, startConversation } from "../harness/agent-conversation.ts";
import { post, repository } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { startRegisteredRunner, stopRunners } from "../harness/runner-process.ts";
import { type HostedServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { look } from "./axe.ts";
import { closeAll, openAs, valued } from "./browser.ts";

/** Lines that somebody may have written who wants to deceive those who read a diff, or to run a script in their page. */
const ATTACK = [
  'const html = "<img src=x onerror=globalThis.ran=true><script>globalThis.ran=true</script>";',
  "const closed = `</span></div></code></pre><style>body{display:none}</style>`; // &lt;b&gt;",
  "if (level !== 'user\u202e \u2066// admins only\u2069 \u2066') {",
  "\u001b[31mred\u0007 and \u200b and \u2028 and \u{e0041}\r",
  "}",
];
const ROWS = 20_000;
/** As long as a patch may be with it, on one line. */
const LONG = "x".repeat(400_000);

let server: HostedServer;
let runId: string;
beforeAll(async () => {
  const files = {
    "greet.rb": "puts 1\n",
    "attack.ts": `${ATTACK.join("\n")}\n`,
    "line.js": `const long = "${LONG}";\n`,
    "rows.txt": Array.from({ length: ROWS }, (_, at) => `row ${at + 1}\n`).join(""),
  };
  const origin = bareRepository(temporaryFolder(), files, "hello.git");
  server = await startHostedServer({ args: LONG_LEASES });
  await addScriptedAgent(server, join(temporaryFolder(), "received"));
  await startRegisteredRunner(server);
  const { project } = await succeeded(
    post(server, "ProjectService/CreateProject", { name: "Hello", initializer: repository(origin.url) }),
  );
  const run = await startConversation(server, { codeContext: { projectId: project.id } });
  runId = run.id;
  const words = ["write attack.ts const one = 1; / const two = 2; / const three = 3;"];
  await run.say(
    "019a0000-0000-7000-8000-000000000001",
    [...words, "write line.js short", "write rows.txt none", "write greet.rb def greet / 1 / end"].join("\n"),
  );
  await run.untilIdle();
  const [{ environmentId }] = (await run.get()).status.usedEnvironments;
  await succeeded(post(server, "EnvironmentService/GetEnvironmentChanges", { environmentId, refresh: true }));
});
afterAll(async () => {
  closeConversations();
  await closeAll();
  await stopRunners();
  await stopAll();
});

const addressOf = (origin: string, more = "") => `${origin}/agents/${runId}?tab=changes${more}`;
const fileOf = (page: Page, name: string): Locator =>
  page.getByRole("region", { name: `hello/${name}`, exact: true });
/** The words of a part of a page that are coloured. */
const coloured = (part: Locator) => part.locator("[data-line] span[style*='--word-token-keyword']");
const draft = async () =>
  (await succeeded(post(server, "AgentReviewService/ListAgentReviewDrafts", { agentExecutionId: runId })))
    .drafts[0];

describe("a diff", () => {
  test("is coloured, shows what hides and reorders, and makes no element of what is in it", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    await page.goto(addressOf(origin));
    const file = fileOf(page, "attack.ts");
    await coloured(file).first().waitFor();
    const removed = file.locator("[data-line-type=change-deletion][data-line]");
    const expected = [
      ATTACK[0],
      ATTACK[1],
      "if (level !== 'user‹202e› ‹2066›// admins only‹2069› ‹2066›') {",
      "␛[31mred␇ and ‹200b› and ‹2028› and ‹e0041›␍",
      "}",
    ];
    // The lines are drawn once more when they have been coloured.
    await until(
      async () => (await removed.allInnerTexts()).map((line) => line.trimEnd()),
      (shown) => shown.join("\n") === expected.join("\n"),
    );
    // The rules of Ruby have those of other languages in them, of which one is replaced.
    await coloured(fileOf(page, "greet.rb")).filter({ hasText: /^def$/ }).waitFor();
    expect(await file.locator("img, script, b, style:not([data-theme-css])").count()).toBe(0);
    expect(await page.evaluate(() => Object.hasOwn(globalThis, "ran"))).toBe(false);
    await look(page);
    await page.goto(addressOf(origin, "&diff=split"));
    await file.locator("[data-additions] [data-line]", { hasText: "const three = 3;" }).waitFor();
    await look(page);
    expect(faults).toEqual([]);
  });

  test("of 20,000 rows, or of one very long one, has no more in the page than what is in sight", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    await page.goto(addressOf(origin));
    const long = fileOf(page, "line.js");
    await long.locator("[data-line]", { hasText: "xxx" }).waitFor();
    await page
      .getByRole("navigation", { name: "Files" })
      .getByRole("button", { name: /rows\.txt/ })
      .click();
    const file = fileOf(page, "rows.txt");
    const rows = page.locator("diffs-container [data-line]");
    await file.locator("[data-line]", { hasText: /^row 1$/ }).waitFor();
    expect(await rows.count()).toBeLessThan(300);
    // It has the room of all of them.
    expect((await file.boundingBox())?.height).toBeGreaterThan(ROWS * 20);
    await page.mouse.move(900, 400);
    for (const part of [0.5, 1]) {
      await page.evaluate((share) => window.scrollTo(0, document.documentElement.scrollHeight * share), part);
      await until(
        async () =>
          (await rows.allInnerTexts()).map((text) => Number(/^row (\d+)$/.exec(text.trim())?.[1] ?? 0)),
        (numbers) => Math.max(...numbers) > ROWS * (part === 1 ? 0.999 : 0.4),
      );
      expect(await rows.count()).toBeLessThan(300);
    }
    expect(faults).toEqual([]);
  });

  test("is commented by the keyboard, and on several lines by the pointer", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    await page.goto(addressOf(origin));
    const file = fileOf(page, "attack.ts");
    await coloured(file).first().waitFor();
    const number = (line: number) =>
      file.getByRole("button", { name: `Comment on line ${line}`, exact: true });
    await number(2).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const field = page.getByLabel("Comment", { exact: true }).and(page.locator(":focus"));
    await field.waitFor();
    await page.keyboard.press("Control+Enter");
    await page.keyboard.type("By the keyboard.");
    await page.keyboard.press("Control+Enter");
    await file.getByText("By the keyboard.").waitFor();
    // The rows are drawn again, and one goes on from where one was.
    await number(3).and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Shift+ArrowUp");
    await page.getByText("Chosen: lines 2 to 3.").waitFor();
    await page.keyboard.press("Shift+ArrowUp");
    await page.keyboard.press("Shift+ArrowUp");
    await page.getByText("Chosen: lines 1 to 3.").waitFor();
    await page.keyboard.press("Shift+ArrowDown");
    await page.getByText("Chosen: lines 2 to 3.").waitFor();
    await number(2).and(page.locator(":focus")).waitFor();
    await look(page);
    await page.keyboard.press("Enter");
    await page.getByPlaceholder("Comment on lines 2 to 3").and(page.locator(":focus")).waitFor();
    await page.keyboard.type("It moves ");
    // Without Shift they go from number to number, and what was typed goes on where one goes on.
    await number(2).focus();
    await page.keyboard.press("ArrowUp");
    await number(1).and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Shift+ArrowDown");
    await page.getByText("Chosen: lines 1 to 2.").waitFor();
    await page.keyboard.press("Enter");
    await page.getByPlaceholder("Comment on lines 1 to 2").and(page.locator(":focus")).waitFor();
    await page.keyboard.type("along.");
    await page.keyboard.press("Control+Enter");
    await file.getByText("lines 1 to 2: It moves along.").waitFor();
    const moved = file.locator(".comment", { hasText: "It moves along." });
    await moved.getByRole("button", { name: "Remove comment" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove comment" }).click();
    await file.getByText("lines 1 to 2: It moves along.").waitFor({ state: "detached" });
    const [from, to] = [await number(1).boundingBox(), await number(2).boundingBox()];
    if (!from || !to) throw new Error("the numbers are not drawn");
    await page.mouse.move(from.x + 5, from.y + 5);
    await page.mouse.down();
    await page.mouse.move(to.x + 5, to.y + 5, { steps: 4 });
    await page.mouse.up();
    await page.getByPlaceholder("Comment on lines 1 to 2").fill("By the pointer.");
    await look(page);
    await page.getByRole("button", { name: "Add comment" }).click();
    await file.getByText("lines 1 to 2: By the pointer.").waitFor();
    const { comments } = await until(draft, (found) => found?.comments.length === 2);
    expect(comments).toMatchObject([
      { firstLine: 3, lastLine: 3, side: "SIDE_NEW", quote: { lines: ["const three = 3;"] } },
      { firstLine: 1, lastLine: 2, side: "SIDE_NEW", quote: { lines: ["const one = 1;", "const two = 2;"] } },
    ]);
    // Of what is hidden in a line, the comment has all.
    await file.getByRole("button", { name: "Comment on line 3 before the change" }).click();
    await page.getByPlaceholder("Comment on line 3").fill("It hides something.");
    await page.getByRole("button", { name: "Add comment" }).click();
    await until(draft, (found) => found?.comments.length === 3);
    // It asks before it throws them away; who leaves it is where they were.
    const discard = page.getByRole("region", { name: "Review" }).getByRole("button", { name: "Discard" });
    await discard.focus();
    await page.keyboard.press("Enter");
    const question = page.getByRole("dialog");
    await question.getByText("Deletes 3 comments.").waitFor();
    await look(page);
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    await discard.and(page.locator(":focus")).waitFor();
    expect((await draft()).comments).toHaveLength(3);
    await discard.click();
    await question.getByRole("button", { name: "Discard review" }).click();
    await until(draft, (found) => found === undefined);
    expect(faults).toEqual([]);
  });

  test("keeps a comment that is being typed until it is added or discarded", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    await page.goto(addressOf(origin));
    const file = fileOf(page, "attack.ts");
    const field = page.getByLabel("Comment", { exact: true });
    const stored = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }));
    await file.getByRole("button", { name: "Comment on line 2", exact: true }).click();
    await field.fill("Two is one too many.");
    // Past a reload, which leaves the focus where a page has it, and while another page is shown.
    await page.reload();
    await valued(field, "Two is one too many.");
    await page.getByPlaceholder("Comment on line 2").waitFor();
    expect(await field.and(page.locator(":focus")).count()).toBe(0);
    await page.getByRole("link", { name: "Conversation" }).click();
    await field.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Changes" }).click();
    await valued(field, "Two is one too many.");
    await file.getByRole("button", { name: "Discard comment" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Leave it" }).click();
    await valued(field, "Two is one too many.");
    // Where its lines have changed, or its file is gone, the words are still there.
    await page.evaluate(() => {
      const [name = ""] = Object.keys(sessionStorage).filter((each) => each.includes("attack.ts"));
      const kept = sessionStorage.getItem(name) ?? "";
      sessionStorage.setItem(name, kept.replace("const two = 2;", "const two = 3;"));
      sessionStorage.setItem(name.replace("attack.ts", "gone.ts"), kept.replace("Two", "Gone"));
    });
    await page.reload();
    await file.getByText("The lines you were commenting on have changed.").waitFor();
    await valued(file.getByLabel("Comment that was not added"), "Two is one too many.");
    const gone = page.getByRole("region", { name: "Comment on hello/gone.ts" });
    await valued(gone.getByLabel("Comment that was not added"), "Gone is one too many.");
    await look(page);
    await gone.getByRole("button", { name: "Discard comment" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard comment" }).click();
    await gone.waitFor({ state: "detached" });
    // Lines that are out of sight are not in the page.
    const tree = page.getByRole("navigation", { name: "Files" });
    await tree.getByRole("button", { name: /attack\.ts/ }).click();
    await file.getByRole("button", { name: "Comment on line 3", exact: true }).click();
    await valued(field, "Two is one too many.");
    await page.getByRole("button", { name: "Add comment" }).click();
    await until(draft, (found) => found?.comments.length === 1);
    await until(stored, (text) => !text.includes("too many"));
    // It is forgotten when its person signs out.
    await file.getByRole("button", { name: "Comment on line 1", exact: true }).click();
    await field.fill("Of one person alone.");
    await until(stored, (text) => text.includes("one person"));
    await page.goto(`${origin}/account`);
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.waitForURL(`${origin}/sign-in`);
    expect(await stored()).not.toContain("one person");
    expect(faults).toEqual([]);
  });

  test("does not jump when its words get their colours, and goes without them where they do not come", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    const file = fileOf(page, "attack.ts");
    const held = Promise.withResolvers<boolean>();
    await page.route("**/assets/worker-*.js", async (route) =>
      (await held.promise) ? route.continue() : route.abort(),
    );
    await page.goto(addressOf(origin));
    await file.locator("[data-line]", { hasText: "const three = 3;" }).waitFor();
    expect(await coloured(file).count()).toBe(0);
    const before = await file.boundingBox();
    held.resolve(true);
    await coloured(file).first().waitFor();
    expect(await file.boundingBox()).toEqual(before);
    expect(faults).toEqual([]);
    await page.unroute("**/assets/worker-*.js");
    await page.route("**/assets/worker-*.js", (route) => route.abort());
    await page.reload();
    await file.getByRole("button", { name: "Comment on line 3", exact: true }).click();
    await page.getByLabel("Comment", { exact: true }).waitFor();
    expect(await coloured(file).count()).toBe(0);
    await page.route("**/assets/engine-*.js", (route) => route.abort());
    await page.reload();
    await file.locator("pre", { hasText: "‹202e›" }).waitFor();
  });
});
