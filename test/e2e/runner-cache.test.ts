import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { stateFolder } from "../../src/config/state-folder.ts";
import { bareRepository } from "../harness/git-repository.ts";
import { startHostedRunner, startRegisteredHostedRunner, stopRunners } from "../harness/runner-process.ts";
import { type ReachableServer, startHostedServer, stopAll, temporaryFolder } from "../harness/server.ts";
import { startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";

let server: ReachableServer;
let remoteUri: string;
beforeAll(async () => {
  server = await startHostedServer();
  remoteUri = bareRepository(temporaryFolder(), { "a.txt": "one\n" }).url;
});
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

/** Runs a command over the repository to its end; the phase of the step. */
async function phaseOfStep(at: Pick<ReachableServer, "url" | "token">): Promise<string> {
  const run = await startExecution(at, { repository: () => remoteUri, steps: [task("test -f a.txt")] });
  await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
  const [action] = await run.actions();
  return action.status.stepStatuses[0].phase;
}

test("a runner keeps what it clones, under its own id, until its cache is switched off", async () => {
  const runner = await startRegisteredHostedRunner(server);
  expect(await phaseOfStep(server)).toBe("STEP_PHASE_DONE");
  const cache = join(runner.stateDir, "repository-cache");
  expect(readdirSync(cache)).toEqual([runner.runnerId]);
  const [repository = ""] = readdirSync(join(cache, runner.runnerId));
  expect(
    readdirSync(join(cache, runner.runnerId, repository))
      .map((name) => name.split(".")[1])
      .sort(),
  ).toEqual(["idx", "json", "pack"]);
  expect(await phaseOfStep(server)).toBe("STEP_PHASE_DONE");
  await runner.stop();
  const { stateDir } = runner;
  const again = await startHostedRunner(server, { stateDir, args: ["--repository-cache", "off"] });
  await again.untilLogged("the runner takes work");
  expect(await phaseOfStep(server)).toBe("STEP_PHASE_DONE");
  expect(existsSync(cache)).toBe(false);
  await again.stop();
});

test("the server's own runner caches nothing where its work is not isolated", async () => {
  const stateHome = temporaryFolder();
  const local = await startHostedServer({
    args: ["--local-runner", "--allow-file-remotes"],
    env: { XDG_STATE_HOME: stateHome },
  });
  expect(await phaseOfStep(local)).toBe("STEP_PHASE_DONE");
  const folders = readdirSync(stateFolder({ XDG_STATE_HOME: stateHome }), { recursive: true }).map(String);
  expect(folders.filter((name) => name.endsWith("workspaces"))).toHaveLength(1);
  expect(folders.filter((name) => name.includes("repository-cache"))).toEqual([]);
});
