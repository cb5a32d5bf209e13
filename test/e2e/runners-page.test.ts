import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { RUNNER_SETTINGS } from "../../src/config/config.ts";
import { post, repository } from "../harness/call.ts";
import { registerRunner } from "../harness/fake-runner.ts";
import { blockOf, fencedBlocks } from "../harness/fenced-blocks.ts";
import { ROOT, runProgram, testWith } from "../harness/program.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

const PAGE = "docs/runners.md";
const blocks = fencedBlocks(PAGE);

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

/** Pastes blocks one after another into one terminal; what each of them printed. */
async function paste(commands: readonly string[]): Promise<string[]> {
  const text = [`export TOKEN=${server.token}\n`, ...commands].join("printf '\\0'\n");
  const { code, stdout, stderr } = await runProgram("bash", [
    "-e",
    "-c",
    text.replaceAll("http://127.0.0.1:8080", server.url),
  ]);
  if (code !== 0) throw new Error(`bash ended with ${code}:\n${stderr}`);
  return stdout.split("\0").slice(1);
}

describe("the page about runners", () => {
  testWith("bash", "curl")("makes a runner with a call that can be pasted", async () => {
    const [printed = ""] = await paste([blockOf(blocks, "Start one", "sh")]);
    const { runner, exchangeToken } = JSON.parse(printed);
    expect(runner.name).toBe("In the attic");
    expect(exchangeToken).toMatch(/^cr_exc_/);
  });

  testWith("bash", "curl")("has a prebuild made of a project with a call that can be pasted", async () => {
    const { environmentClassId } = await registerRunner(server);
    const { body } = await post(server, "ProjectService/CreateProject", {
      initializer: repository("https://git.example.org/team/hello.git"),
      prebuildConfiguration: { environmentClassIds: [environmentClassId] },
    });
    const [, printed = ""] = await paste([
      `export PROJECT_ID=${body.project.id}\n`,
      blockOf(blocks, "Prebuilds", "sh"),
    ]);
    expect(JSON.parse(printed).prebuild.status.phase).toBe("PREBUILD_PHASE_PENDING");
  });

  testWith(
    "bash",
    "curl",
    "node",
  )("is a runner by hand, pasted from the top down", async () => {
    const [setToken, ...commands] = blocks
      .filter(({ section, language }) => section === "Write one" && language === "sh")
      .map(({ text }) => text);
    expect(setToken).toBe("export TOKEN=cr_pat_...\n");
    const printed = await paste(commands);
    const answers = printed.filter((text) => text !== "").map((text) => JSON.parse(text));
    const [action, renewed, begun, reported, finished, late, listed] = answers;
    expect(action.steps).toHaveLength(2);
    for (const answer of [renewed, begun, reported]) {
      expect(answer).toMatchObject({ expiresAt: expect.stringMatching(/Z$/), stop: false });
    }
    expect(finished).toEqual({});
    expect(late).toMatchObject({
      code: "aborted",
      details: [{ debug: { reason: "ERROR_REASON_LEASE_LOST" } }],
    });
    expect(listed.outputs).toMatchObject([{ values: { files: { intValue: "12" } } }]);
    expect(answers).toHaveLength(7);
    const [{ actionId }] = listed.outputs;
    const logs = await post(server, "WorkflowService/StreamActionLogs", {
      workflowExecutionActionId: actionId,
    });
    expect(Buffer.from(logs.body.data, "base64").toString()).toBe("all made\n");
  });

  testWith("bash", "curl")("asks about a repository with calls that can be pasted", async () => {
    const calls = blocks
      .filter(({ section, language }) => section === "Ask a runner about a repository" && language === "sh")
      .map(({ text }) => text);
    const { runner } = JSON.parse((await paste([blockOf(blocks, "Start one", "sh")]))[0] ?? "");
    const printed = await paste([`export RUNNER_ID=${runner.runnerId}\n`, ...calls]);
    const [parsed, checked] = printed.filter((text) => text !== "").map((text) => JSON.parse(text));
    expect(parsed).toMatchObject({
      git: { host: "github.com", owner: "octocat", repo: "Hello-World" },
      pullRequest: { id: "7" },
    });
    // Its program was never started.
    expect(checked).toMatchObject({
      code: "failed_precondition",
      details: [{ debug: { reason: "ERROR_REASON_RUNNER_UNREACHABLE" } }],
    });
  });

  test("names every setting of the program", () => {
    const text = readFileSync(join(ROOT, PAGE), "utf8");
    for (const { flag } of Object.values(RUNNER_SETTINGS)) expect(text).toContain(`\`${flag}\``);
  });

  test("names tests that are there", () => {
    const text = readFileSync(join(ROOT, PAGE), "utf8");
    const named = text.match(/(src|test)\/[\w/-]+\.test\.ts/g) ?? [];
    expect(named.length).toBeGreaterThan(0);
    for (const path of named) expect(() => readFileSync(join(ROOT, path))).not.toThrow();
  });
});
