import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Page, Request } from "playwright-core";
import { barriers } from "../../scripts/screenshots/barriers.ts";
import { post } from "../harness/call.ts";
import { registerRunner, succeeded } from "../harness/fake-runner.ts";
import { freePort } from "../harness/free-port.ts";
import { addMember } from "../harness/member.ts";
import { addOrganization } from "../harness/organization.ts";
import { type HostedServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { signInLink } from "../harness/session.ts";
import { until } from "../harness/until.ts";
import { expectNoOverflow, look } from "./axe.ts";
import { closeAll, open, openAs, type Visit, without } from "./browser.ts";
import { expectForgotten } from "./page-state.ts";

/** Bytes of files, packed, that a browser may load before the first page is there; headers of answers are not counted. */
const FIRST_LOAD_BYTES = 250_000;

let server: HostedServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(async () => {
  await closeAll();
  await stopAll();
});

describe("the console", () => {
  test("leads a person who is not signed in to the sign-in page, and from there back to where they wanted to go", async () => {
    const { page, origin } = await open(server);
    await page.goto(`${server.url}/account?tab=tokens`);
    await page.waitForURL(`${origin}/sign-in?*`);
    await page.getByLabel("Access token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: /^Sign in as/ }).click();
    await page.waitForURL(`${origin}/account?tab=tokens`);
    await page.getByRole("heading", { name: "Account", level: 1 }).waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    );
    expect(kept).not.toContain(server.token);
    expect(kept).not.toMatch(/cr_/);
  });

  test("loads less than 250 kB, from its own server alone, and keeps to the policy", async () => {
    const { page, context, faults, origin } = await openAs(server, "admin@localhost");
    const loaded: { url: string; bytes: number }[] = [];
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    const begun = new Map<string, { url: string; headBytes: number }>();
    session.on("Network.responseReceived", ({ requestId, type, response: { url, encodedDataLength } }) => {
      // What the page before still receives is not of this one.
      if (type === "Document") {
        begun.clear();
        loaded.length = 0;
      }
      begun.set(requestId, { url, headBytes: encodedDataLength });
    });
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      const answer = begun.get(requestId);
      if (answer) loaded.push({ url: answer.url, bytes: encodedDataLength - answer.headBytes });
    });
    const response = await page.goto(`${origin}/`);
    await page.getByRole("heading", { name: "Runners" }).waitFor();
    const files = loaded.filter(({ url }) => !url.includes("/api/"));
    expect(files.length).toBeGreaterThan(2);
    expect(files.filter(({ bytes }) => bytes <= 0)).toEqual([]);
    expect(files.filter(({ url }) => !url.startsWith(`${origin}/`))).toEqual([]);
    expect(files.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(FIRST_LOAD_BYTES);
    expect(response?.headers()["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(faults).toEqual([]);
  });

  test("has a reference of the operations, which is searched and keeps to its policy", async () => {
    const { page, faults, origin } = await openAs(server, "admin@localhost");
    // The keys are heard once the page follows the events, and not as soon as it is drawn.
    await without(page, ".bar");
    await page.keyboard.press("?");
    await page.getByRole("link", { name: "Reference of the operations" }).click();
    await page.waitForURL(`${origin}/docs/api`);
    await page.goto(`${server.url}/docs/api/IdentityService`);
    await page.getByText(`curl ${server.url}/api/service.v1.IdentityService/`).waitFor();
    await page.getByLabel("Search").fill("rotate webhook secret");
    await page.getByLabel("Search").press("Enter");
    await page.getByText("1 found").waitFor();
    await page.getByRole("link", { name: "RotateWorkflowWebhookSecret" }).click();
    await page.getByRole("heading", { name: "RotateWorkflowWebhookSecret", level: 2 }).waitFor();
    expect(await barriers(page)).toEqual([]);
    expect(faults).toEqual([]);
  });

  test("shows that it loads while the network is slow: itself, a page of it, and what a page reads", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    /** Has what fits answered no sooner than the test wants it. */
    const hold = async (url: string) => {
      const held = Promise.withResolvers<void>();
      await page.route(url, async (route) => {
        await held.promise;
        await route.continue();
      });
      return held.resolve;
    };
    const program = await hold("**/assets/index-*.js");
    const script = await hold("**/assets/Projects-*.js");
    const list = await hold("**/*ProjectService/ListProjects");
    await page.goto(`${origin}/runners`, { waitUntil: "commit" });
    await page.getByRole("status").filter({ hasText: "Loading …" }).waitFor();
    program();
    await page.getByRole("heading", { name: "Runners", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Projects", exact: true }).click();
    const progress = page.getByRole("status", { name: "Loading the page", exact: true });
    await progress.waitFor();
    expect(await barriers(page)).toEqual([]);
    script();
    await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor();
    await progress.waitFor({ state: "detached" });
    const skeleton = page.getByRole("status", { name: "Loading", exact: true });
    await skeleton.waitFor();
    list();
    await skeleton.waitFor({ state: "detached" });
    expect(faults).toEqual([]);
  });

  test("says that it is behind while its server is killed, and goes on after what it has when there is one again", async () => {
    const port = String(await freePort());
    const killed = await startServer({ args: ["--port", port] });
    const { page, origin, faults } = await openAs(killed, "admin@localhost");
    const createProject = (place: Pick<typeof killed, "url">, name: string) => {
      const initializer = { specs: [{ git: { remoteUri: `https://git.example.org/team/${name}.git` } }] };
      return succeeded(
        post({ ...place, token: killed.token }, "ProjectService/CreateProject", { initializer }),
      );
    };
    await page.goto(`${origin}/organization?tab=events`);
    await page.getByText("Live", { exact: true }).waitFor();
    await createProject(killed, "before");
    const created = page.getByRole("row", { name: /Project create/ });
    await created.waitFor();
    await killed.kill();
    const behind = page.getByText(/^This page may be out of date/);
    await behind.waitFor();
    const again = await startServer({ dataDir: killed.dataDir, args: ["--port", port] });
    await createProject(again, "after");
    await created.nth(1).waitFor();
    await behind.waitFor({ state: "detached" });
    // What it had comes not again.
    await createProject(again, "last");
    await created.nth(2).waitFor();
    expect(await created.count()).toBe(3);
    expect(faults).toEqual([]);
  });

  test("runs no script and takes no style that is not its own", async () => {
    const { page, faults } = await openAs(server, "admin@localhost");
    const outcome = await page.evaluate(async () => {
      const broken: string[] = [];
      const expected = ["script-src-elem", "style-src-elem", "img-src", "connect-src"];
      // Some are reported later than they are refused.
      const areAllReported = new Promise<void>((resolve) => {
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
          broken.push(effectiveDirective);
          if (expected.every((directive) => broken.includes(directive))) resolve();
        });
      });
      const add = (tag: string, fill: Record<string, string>) =>
        document.body.append(Object.assign(document.createElement(tag), fill));
      Object.assign(globalThis, { ran: "" });
      add("script", { textContent: "globalThis.ran += 'inline '" });
      add("script", { src: "data:text/javascript,globalThis.ran+='data '" });
      add("style", { textContent: "body { color: rgb(1, 2, 3) }" });
      add("img", { src: "https://other.example.org/x.png" });
      // In a turn of its own: while the debugger evaluates, a policy lets it.
      const evaluates = await new Promise<boolean>((resolve) => {
        setTimeout(() => {
          try {
            resolve(new Function("return true")());
          } catch {
            resolve(false);
          }
        });
      });
      const calls = await fetch("https://other.example.org/").then(
        () => true,
        () => false,
      );
      await areAllReported;
      return {
        evaluates,
        calls,
        ran: (globalThis as { ran?: string }).ran,
        color: getComputedStyle(document.body).color,
      };
    });
    expect(outcome).toMatchObject({ evaluates: false, calls: false, ran: "" });
    expect(outcome.color).not.toBe("rgb(1, 2, 3)");
    // Which shows that the faults of other tests would tell of a breach.
    expect(faults.join()).toMatch(/Content Security Policy/);
  });

  test("learns what changes, in each of several tabs of which one has the stream", async () => {
    const { page, context, origin, faults } = await openAs(server, "admin@localhost");
    const second = await context.newPage();
    await second.goto(`${origin}/projects`);
    // It says that it may be behind until it learns of changes.
    for (const each of [page, second]) await without(each, ".bar, .skeleton");
    await page.goto(`${origin}/projects`);
    await without(page, ".bar, .skeleton");
    const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/team/made.git" } }] };
    await post(server, "ProjectService/CreateProject", { initializer });
    // By the event, and not by the reading of each minute.
    for (const each of [page, second])
      await each.getByRole("row", { name: /^made/ }).waitFor({ timeout: 30_000 });
    expect(faults).toEqual([]);
  });

  test("holds three streams at most in all its tabs together, and gives the place of one that is closed to another", async () => {
    const { page, context, origin } = await openAs(server, "admin@localhost");
    await page.close();
    const streams = new Set<Request>();
    let most = 0;
    context.on("request", (request) => {
      if (/Service\/Watch/.test(request.url())) streams.add(request);
      most = Math.max(most, streams.size);
    });
    context.on("requestfinished", (request) => streams.delete(request));
    context.on("requestfailed", (request) => streams.delete(request));
    const tabs: Page[] = [];
    /** The places of the tabs that show the events as they come. */
    const live = async () => {
      const counts = tabs.map((tab) => (tab.isClosed() ? 0 : tab.getByText("Live", { exact: true }).count()));
      return (await Promise.all(counts)).flatMap((count, at) => (count > 0 ? [at] : []));
    };
    for (let at = 0; at < 5; at++) {
      const tab = await context.newPage();
      await tab.goto(`${origin}/organization?tab=events`);
      await tab.getByRole("heading", { name: "Events", level: 2 }).waitFor();
      tabs.push(tab);
    }
    // One follows what all of them show, and two what they show alone.
    const [first = 0, second = 0] = await until(live, (found) => found.length === 2);
    // The streams of a tab that is closed are not reported as ended.
    expect(most).toBe(3);
    await tabs[first]?.close();
    const [other = 0] = (await until(live, (found) => found.length === 2)).filter((at) => at !== second);
    // Whichever place becomes free, a tab that waits gets it.
    await tabs[second]?.close();
    expect(await until(live, (found) => found.length === 2)).toContain(other);
    await context.close();
  });

  test("leads from the sign-in page to no other host, and to no part of that page", async () => {
    const { page, origin } = await openAs(server, "admin@localhost");
    const ways = async (next: string) => {
      await page.goto(`${origin}/sign-in?next=${encodeURIComponent(next)}`);
      return page.getByRole("link", { name: "Open Chartroom" }).getAttribute("href");
    };
    for (const next of [
      "https://evil.example.org",
      "//evil.example.org",
      "/\\evil.example.org",
      "/\t/evil.example.org",
      "javascript:alert(1)",
      "/sign-in?next=/",
      "/sign-in/device?x",
      '/sign-in/device#"><b>',
    ]) {
      expect([next, await ways(next)]).toEqual([next, "/"]);
    }
    for (const next of ["/account?tab=tokens", "/sign-in/device#WDJB-MJHT"])
      expect(await ways(next)).toBe(next);
  });

  test("logs a machine in, whose code survives the sign-in", async () => {
    const res = await fetch(`${server.url}/sign-in/device/authorize`, {
      method: "POST",
      body: new URLSearchParams({ machine: "<b>laptop</b>" }),
    });
    const asked = (await res.json()) as Record<string, string>;
    const { page, origin, faults } = await open(server);
    await page.goto(asked.verification_uri_complete?.replace(origin, server.url) ?? "");
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByLabel("Access token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: /^Sign in as/ }).click();
    await page.waitForURL(`${origin}/sign-in/device`);
    await page.getByText(/You are signed in as Administrator/).waitFor();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("calls itself \u201c<b>laptop</b>\u201d").waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Log it in" }).click();
    await page.getByText("The machine is logged in.").waitFor();
    const token = await fetch(`${server.url}/sign-in/device/token`, {
      method: "POST",
      body: new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:device_code",
        device_code: asked.device_code ?? "",
      }),
    });
    expect(token.status).toBe(200);
    await page.goto(`${origin}/sign-in/device`);
    await page.getByLabel("The code that the machine shows").fill("BBBB-BBBB");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText(/No machine waits with this code/).waitFor();
    expect(faults).toEqual([]);
  });

  test("signs out, and everywhere", async () => {
    const { page, origin } = await openAs(server, "admin@localhost");
    const other = await openAs(server, "admin@localhost");
    await page.getByRole("link", { name: "Administrator" }).click();
    await page.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await page.waitForURL(`${origin}/sign-in`);
    // By the stream's end, and not by the reading of each minute.
    await other.page.getByText("Your session has ended.").waitFor({ timeout: 30_000 });
    await other.page.reload();
    await other.page.waitForURL(`${origin}/sign-in?*`);
  });

  test("takes an invited person in from the sign-in page to the new organization, in every tab", async () => {
    const { organizationId, token } = await addOrganization(server, "Inviting");
    const made = await post(
      server,
      "OrganizationService/CreateOrganizationInvite",
      { organizationId },
      token,
    );
    const { body } = await post(server, "UserService/GetAuthenticatedUser", {});
    const email = "invited@example.org";
    await addMember(server, { organizationId: body.user.organizationId, email });
    const { page, context, origin, faults } = await open(server);
    const invite = `${origin}/organization/join#${made.body.invite.inviteId}`;
    await page.goto(invite);
    await page.waitForURL(`${origin}/sign-in`);
    await page.getByText(/^You are invited to join Inviting\./).waitFor();
    expect(await barriers(page)).toEqual([]);
    // A person who comes by a link opens the invite again.
    await page.goto("about:blank");
    await page.goto(`${origin}/sign-in#${await signInLink(server, email)}`);
    await page.getByRole("button", { name: /^Sign in as/ }).click();
    await page.getByRole("button", { name: "My organization" }).waitFor();
    const second = await context.newPage();
    await second.goto(`${origin}/projects`);
    await second.getByRole("button", { name: "My organization" }).waitFor();
    await page.goto(invite);
    await page.getByRole("button", { name: "Join organization" }).click();
    await page.getByRole("button", { name: "Switch to Inviting" }).click();
    for (const each of [page, second]) {
      await each.getByRole("button", { name: "Inviting", exact: true }).waitFor();
      await each.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    }
    await page.getByRole("button", { name: "Inviting", exact: true }).click();
    await page.getByText("You are here").waitFor();
    expect(await barriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Switch to My organization" }).click();
    // Not the button of the dialog, which is there until the new page is.
    for (const each of [page, second])
      await each.getByRole("button", { name: "My organization", exact: true }).waitFor();
    // The other tab learns of it by a message, before the reading of each minute.
    await second.getByRole("heading", { name: "Home", level: 1 }).waitFor();
    await page.getByRole("link", { name: "The person of" }).click();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await second.getByText("Your session has ended.").waitFor({ timeout: 30_000 });
    expect(faults).toEqual([]);
  });

  test("shows a new access token once, renews it when it ends soon, and deletes it", async () => {
    const { page, context, origin, faults } = await openAs(server, "admin@localhost");
    await page.goto(`${origin}/account?tab=tokens`);
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByLabel("Description").fill("A test of the console");
    await page.getByLabel("Valid for").selectOption("7");
    await page.getByRole("dialog").getByRole("button", { name: "Create token" }).click();
    const token = await page.locator(".secret").innerText();
    const who = () =>
      fetch(`${server.url}/api/service.v1.UserService/GetAuthenticatedUser`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: "{}",
      });
    expect((await who()).status).toBe(200);
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.locator(".secret").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Sessions", exact: true }).click();
    await page.getByText("This browser", { exact: true }).waitFor();
    await expectForgotten(page, context, token);
    await page.getByRole("link", { name: "Access tokens", exact: true }).click();
    const row = page.getByRole("row", { name: /A test of the console/ });
    const dialog = page.getByRole("dialog");
    const ends = dialog.locator("select:focus");
    const openRenewal = async () => {
      await row.getByRole("button", { name: "Renew token" }).click();
      await ends.waitFor();
      return ends.locator("option").allTextContents();
    };
    await row.getByText("Expires soon").waitFor();
    const [shorter, longer] = [/^30 days, until /, /^90 days, until /].map((each) =>
      expect.stringMatching(each),
    );
    expect(await openRenewal()).toEqual([shorter, longer]);
    await ends.selectOption("90");
    await dialog.getByRole("button", { name: "Renew token" }).click();
    await row.getByText(/^in (89|90) d$/).waitFor();
    await row.locator("button:focus", { hasText: "Renew token" }).waitFor();
    await row.getByText("Expires soon").waitFor({ state: "detached" });
    // The server takes no end before the present one.
    expect(await openRenewal()).toEqual([longer]);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Delete token" }).click();
    await dialog.getByRole("button", { name: "Delete token" }).click();
    await row.waitFor({ state: "detached" });
    expect((await who()).status).toBe(401);
    expect(faults).toEqual([]);
  });
});

describe("the lists", () => {
  test("make projects, find them as one types, and say why one could not be made", async () => {
    const { page, origin, faults } = await openAs(server, "admin@localhost");
    await page.getByRole("link", { name: "Projects" }).click();
    const dialog = page.getByRole("dialog");
    const create = async (remote: string) => {
      // The dialog before has a button of the same name.
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Create project" }).click();
      await dialog.getByLabel(/^Repository/).fill(remote);
      await dialog.getByRole("button", { name: "Create project" }).click();
    };
    await create("https://git.example.org/team/tools.git");
    await page.getByRole("row", { name: /^tools/ }).waitFor();
    await create("https://git.example.org/team/hello.git");
    await page.getByRole("row", { name: /^hello/ }).waitFor();
    const search = page.getByLabel("Search projects");
    await search.fill("HLL");
    await page.waitForURL(`${origin}/projects?q=HLL`);
    await search.press("Home");
    await search.press("ArrowRight");
    await page.keyboard.type("E");
    await page.getByRole("row", { name: /^tools/ }).waitFor({ state: "detached" });
    await page.waitForURL(`${origin}/projects?q=HELL`);
    // The caret stays where one types.
    expect(await search.evaluate((field) => (field as HTMLInputElement).selectionStart)).toBe(2);
    await page.reload();
    await page.getByRole("row", { name: /^hello/ }).waitFor();
    await page.getByLabel("Search projects").fill("");
    await page.getByLabel("Order", { exact: true }).selectOption({ label: "Newest first" });
    const names = page.getByRole("table", { name: "Projects" }).locator(".row-link");
    await names.first().filter({ hasText: "hello" }).waitFor();
    await page.getByRole("button", { name: "Filters", exact: true }).click();
    await page.getByRole("button", { name: "Created by me" }).click();
    // The buttons take turns, and the focus is on the one that is there.
    await page.locator("button:focus", { hasText: "Created by anyone" }).press("Enter");
    await page.locator("button:focus", { hasText: "Created by me" }).press("Enter");
    await page.locator("button:focus", { hasText: "Created by anyone" }).waitFor();
    await page.getByRole("button", { name: "Filters (1)" }).waitFor();
    const repository = page.getByLabel("Repository URL");
    await repository.fill("https://git.example.org/team/tools.git");
    await repository.press("Enter");
    await page.getByRole("row", { name: /^hello/ }).waitFor({ state: "detached" });
    expect(await repository.evaluate((field) => field === document.activeElement)).toBe(true);
    // A person who gets the address sees the same.
    await page.reload();
    await page.getByRole("button", { name: "Filters (2)" }).waitFor();
    await page.getByRole("row", { name: /^tools/ }).waitFor();
    expect(await names.count()).toBe(1);
    expect(await repository.inputValue()).toBe("https://git.example.org/team/tools.git");
    expect(Object.keys(Object.fromEntries(new URL(page.url()).searchParams)).sort()).toEqual([
      "by",
      "repository",
      "sort",
    ]);
    await page.getByLabel("Runs on", { exact: true }).selectOption({ label: "Runners of the organization" });
    await page.getByText("No project matches. Remove a filter.").waitFor();
    await look(page);
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.locator("button:focus", { hasText: /^Filters$/ }).waitFor();
    await page.getByRole("row", { name: /^tools/ }).waitFor();
    await names.first().filter({ hasText: "hello" }).waitFor();
    await create("no repository");
    const problem = dialog.getByRole("alert");
    await problem.getByText("CONSTRAINT_VIOLATED").waitFor();
    await problem.getByText("remote_uri", { exact: false }).first().waitFor();
    await problem.getByText(/Request [0-9a-f-]{36}/).waitFor();
    expect(faults).toEqual([]);
  });

  test("make a runner, and show the command that starts it", async () => {
    const { page, context } = await openAs(server, "admin@localhost");
    await page.getByRole("link", { name: "Runners" }).click();
    const health = page.getByRole("region", { name: "Server" });
    await health.getByText("Ready", { exact: true }).waitFor();
    await health.getByText(/^release \d/).waitFor();
    await page.getByRole("button", { name: "Create runner" }).click();
    await page.getByLabel("Name").fill("In the attic");
    await page.getByRole("dialog").getByRole("button", { name: "Create runner" }).click();
    const command = await page.locator(".secret").innerText();
    expect(command).toMatch(
      new RegExp(`^CHARTROOM_EXCHANGE_TOKEN=cr_exc_\\w+ npx chartroom runner --server ${server.url}$`),
    );
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("row", { name: /^In the attic/ }).waitFor();
    const working = await registerRunner(server, { name: "In the cellar" });
    const row = page.getByRole("row", { name: /^In the cellar/ });
    await row.getByText("Active", { exact: true }).waitFor();
    const spec = { desiredPhase: "RUNNER_PHASE_INACTIVE" };
    await succeeded(post(server, "RunnerService/UpdateRunner", { runnerId: working.runnerId, spec }));
    await row.getByText("Paused", { exact: true }).waitFor();
    const [token = ""] = /cr_exc_\w+/.exec(command) ?? [];
    await page.getByRole("link", { name: "Projects" }).click();
    await page.getByRole("heading", { name: "Projects", level: 1 }).waitFor();
    expect(token).not.toBe("");
    await expectForgotten(page, context, token);
    // What the server says of itself when it is not ready, the page says.
    const problems = [{ check: "disk", reason: "the disk of the data folder is full" }];
    await page.route("**/readyz", (route) => route.fulfill({ status: 503, json: { problems } }));
    await page.getByRole("link", { name: "Runners" }).click();
    await health.getByText("Not ready", { exact: true }).waitFor();
    await health.getByText("the disk of the data folder is full").waitFor();
  });
});

describe.each(["light", "dark"] as const)("in the %s theme", (colorScheme) => {
  let visit: Visit;
  beforeAll(async () => {
    visit = await openAs(server, "admin@localhost");
    await visit.page.emulateMedia({ colorScheme });
  });
  test.each([
    ["/", "Home"],
    ["/projects?q=nothing", "Projects"],
    ["/runners", "Runners"],
    ["/account", "Account"],
    ["/account?tab=tokens", "Account"],
    ["/organization/nothing/here", "Page not found"],
  ])("axe-core finds nothing serious on %s, wide and narrow", async (path, heading) => {
    const { page, origin, faults } = visit;
    for (const width of [1280, 380]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(origin + path);
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
      await without(page, ".skeleton");
      expect([width, await barriers(page)]).toEqual([width, []]);
      await expectNoOverflow(page);
    }
    expect(faults).toEqual([]);
  });
});
