import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { bareRepository } from "../harness/git-repository.ts";
import { startServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { look } from "./axe.ts";
import { closeAll, open } from "./browser.ts";
import { expectForgotten } from "./page-state.ts";

afterAll(async () => {
  await closeAll();
  await stopAll();
});

test("the link of a first start leads to a workflow that has run, all of it made in the page", async () => {
  const repository = bareRepository(temporaryFolder(), { "hello.txt": "Hello, world\n" }, "hello.git");
  const done = join(temporaryFolder(), "done");
  // No folder of data yet, and a runner of its own, as README.md says.
  const server = await startServer({
    dataDir: join(temporaryFolder(), "data"),
    args: ["--local-runner", "--allow-file-remotes"],
  });
  const [link = "", secret = ""] = /http:\S+\/sign-in#(cr_lnk_\w+)/.exec(server.output()) ?? [];
  expect(secret).not.toBe("");
  const { page, context, faults } = await open(server);
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in as Administrator" }).click();
  await page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
  expect(page.url()).not.toContain(secret);
  await expectForgotten(page, context, secret);
  const firstSteps = page.getByRole("region", { name: "Get started" });
  await firstSteps.getByText("npm start -- --sample-data", { exact: true }).waitFor();
  await look(page);

  await page.getByRole("link", { name: "Projects", exact: true }).click();
  await page.getByRole("button", { name: "Create project" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Repository/).fill(repository.url);
  await dialog.getByRole("button", { name: "Create project" }).click();
  await page.getByRole("row", { name: /^hello/ }).waitFor();
  await page.getByRole("link", { name: "Home", exact: true }).click();
  await firstSteps.waitFor({ state: "detached" });

  await page.getByRole("link", { name: "Workflows", exact: true }).click();
  await page.getByRole("link", { name: "Create workflow" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Count lines");
  const wait = `until [ -e '${done}' ]; do sleep 0.1; done`;
  await page.getByLabel(/^Command/).fill(`echo it begins; ${wait}; echo "lines: $(wc -l < hello.txt)"`);
  await page.getByLabel("Where it runs").selectOption({ label: "Projects" });
  await page.getByRole("button", { name: "Add hello" }).click();
  await page.getByRole("button", { name: "Create workflow" }).click();
  await page.getByRole("heading", { name: "Count lines", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Start workflow" }).click();
  await dialog.getByText(/^1 action, for hello/).waitFor();
  await dialog.getByRole("button", { name: "Start workflow" }).click();

  await page.locator(".cell").filter({ hasText: "hello" }).click();
  const log = page.getByRole("log", { name: "Log of step 1" });
  await log.getByText("it begins", { exact: true }).waitFor();
  const state = page.locator(".page-title .state");
  await state.filter({ hasText: "Running" }).waitFor();
  writeFileSync(done, "");
  // The same page shows the rest as it comes.
  await log.getByText("lines: 1", { exact: true }).waitFor();
  await state.filter({ hasText: "Succeeded" }).waitFor();
  await page.getByRole("link", { name: "the workflow" }).click();
  await page.getByRole("row", { name: /Succeeded.*1 of 1/ }).waitFor();
  expect(faults).toEqual([]);
});
