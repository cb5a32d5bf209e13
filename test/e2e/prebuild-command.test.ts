import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { v7 } from "uuid";
import { post, repository } from "../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type ReachableServer,
  runCommand,
  runHostedCommand,
  startHostedServer,
  stopAll,
  temporaryFolder,
} from "../harness/server.ts";

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/;

let server: ReachableServer;
let runner: FakeRunner;
let home: string;
let projectId: string;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  runner = await registerRunner(server);
  home = temporaryFolder();
  projectId = await createProject([runner.environmentClassId]);
});
afterAll(stopAll);

async function createProject(environmentClassIds: readonly string[]): Promise<string> {
  const initializer = repository("https://git.example.org/a/b.git");
  const prebuildConfiguration = { environmentClassIds, timeout: "900s" };
  const request = { initializer, prebuildConfiguration };
  return (await succeeded(post(server, "ProjectService/CreateProject", request))).project.id;
}

/** Runs a command as a user whose terminal has a server and a token. */
const chartroom = (args: readonly string[], command = runHostedCommand, token = server.token) =>
  command(["prebuild", ...args], {
    XDG_CONFIG_HOME: home,
    CHARTROOM_SERVER: server.url,
    CHARTROOM_TOKEN: token,
  });
/** Runs a command that succeeds, and returns its output. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await chartroom(args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}
async function failure(...args: readonly string[]) {
  const { code, stdout, stderr } = await chartroom(args);
  expect(stdout).toBe("");
  return [code, stderr];
}
const columns = (text: string) => text.split("\n").map((line) => line.split(/ {2,}/));

describe("chartroom prebuild", () => {
  test("makes a prebuild, shows how far it is and why it failed, and deletes it", async () => {
    const { code, stdout } = await chartroom(["create", projectId], runCommand);
    expect([code, stdout]).toEqual([0, expect.stringMatching(ID)]);
    const id = stdout.trim();
    const [headings, row] = columns(await run("list", "--project", projectId));
    expect(headings).toEqual([
      ...["PREBUILD", "PHASE", "CREATED (UTC)", "ENDED (UTC)", "REQUESTED BY", "PROJECT", "CLASS", "FAILURE"],
    ]);
    // The empty column is one blank more between its neighbours.
    expect(row).toEqual([id, "pending", expect.any(String), "manual", projectId, runner.environmentClassId]);
    const work = await runner.leaseOne();
    expect(work.prebuild).toMatchObject({ prebuildId: id, timeout: "900s" });
    const error = { failure: { message: "no space\u202e left" } };
    await succeeded(runner.finish(work, "OUTCOME_FAILED", error));
    expect(await run("show", id)).toMatch(/^phase: {4}stopping$/m);
    await succeeded(runner.finish(await runner.leaseOne()));
    const shown = await run("show", id);
    expect(shown.split("\n").map((line) => line.split(/: +/).slice(0, 2))).toEqual([
      ["prebuild", id],
      ["phase", "failed"],
      ["failure", "no space\u{fffd} left"],
      ["project", projectId],
      ["class", runner.environmentClassId],
      ["asked by", "manual"],
      ["creator", expect.any(String)],
      ["executor", expect.any(String)],
      ["timeout", "900 s"],
      ["created", expect.any(String)],
      ["changed", expect.any(String)],
      ["ended", expect.any(String)],
      [""],
    ]);
    expect(JSON.parse(await run("show", id, "--json"))).toMatchObject({
      id,
      status: { phase: "PREBUILD_PHASE_FAILED", failureMessage: "no space\u202e left" },
    });
    expect(await run("list", "--phase", "failed")).toContain("no space\u{fffd} left");
    expect(await run("delete", id)).toBe("");
    expect(await run("list")).toBe("no prebuilds\n");
    expect(await failure("show", id)).toEqual([1, expect.stringContaining("prebuild not found")]);
  });

  test("makes one of a class, with a time, and cancels it", async () => {
    const answer = await run(
      ...["create", projectId, "--class", runner.environmentClassId, "--timeout", "300", "--json"],
    );
    const { prebuildId } = JSON.parse(answer);
    const [listed, ...others] = JSON.parse(await run("list", "--phase", "pending", "running", "--json"));
    expect([listed.id, listed.spec.timeout, others]).toEqual([prebuildId, "300s", []]);
    expect(await failure("create", projectId)).toEqual([1, expect.stringContaining("has not ended")]);
    expect(await run("cancel", prebuildId)).toBe("");
    expect(await run("cancel", prebuildId)).toBe("");
    expect(JSON.parse(await run("list", "--phase", "cancelled", "--json"))).toHaveLength(1);
    expect(JSON.parse(await run("list", "--phase", "pending", "completed", "--json"))).toEqual([]);
    // The next one takes its place.
    const next = (await run("create", projectId)).trim();
    await succeeded(runner.finish(await runner.leaseOne()));
    expect(await failure("cancel", next)).toEqual([1, expect.stringContaining("waits or runs")]);
    expect(await run("list", "--limit", "1")).toMatch(new RegExp(`${next}  completed `));
    await run("delete", next);
    await succeeded(runner.finish(await runner.leaseOne()));
    expect(await run("list")).toBe("no prebuilds\n");
  });

  test("says what to do about what it cannot do", async () => {
    expect(await failure("create", await createProject([]))).toEqual([
      1,
      expect.stringContaining("names no environment class"),
    ]);
    expect(await failure("create", projectId, "--timeout", "299")).toEqual([
      1,
      expect.stringContaining("--timeout"),
    ]);
    expect(await failure("list", "--phase", "starting")).toEqual([1, expect.stringContaining("cancelling")]);
    expect(await failure("cancel", v7())).toEqual([1, expect.stringContaining("you may not see it")]);
    expect(await chartroom(["list"], runHostedCommand, "none")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("chartroom login"),
    });
  });
});
