import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "@jest/globals";
import { expireAllLeases } from "../harness/lease.ts";
import { printedRandom } from "../harness/random.ts";
import { stopRunners } from "../harness/runner-process.ts";
import { runCommand, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";
import { falseCounts, falseReports, leftovers, lostAttempts, recordProblems } from "./execution-problems.ts";
import {
  createWorld,
  ended,
  type HeldRun,
  holdActions,
  holdLease,
  holdReport,
  startFreely,
  type World,
} from "./held-actions.ts";
import { MOMENTS, type Moment, UNANSWERED_BY_HOST } from "./moments.ts";

let world: World;
afterEach(() => world.stop());
afterAll(async () => {
  await stopRunners();
  await stopAll();
});

/** What people see of an action, and how often its command began, which the command tells. */
interface Story {
  readonly attempts: number;
  /** Those that a warning says were lost. */
  readonly lost: readonly number[];
  readonly began: number;
}

/** Holds all executions against what really happened, once they are over; the story of each action by its name. */
async function storiesOf(runs: readonly HeldRun[]): Promise<Record<string, Story>> {
  const actions = (await Promise.all(runs.map(ended))).flat();
  for (const run of runs) {
    expect([...(await falseReports(world, run)), ...(await falseCounts(run))]).toEqual([]);
  }
  expect(actions.map(({ status }) => [status.phase, status.failures])).toEqual(
    actions.map(() => ["WORKFLOW_EXECUTION_ACTION_PHASE_DONE", []]),
  );
  expect(await recordProblems(world.api, actions)).toEqual([]);
  const opened = world.host.pullRequests().map(({ repository }) => repository);
  const repositories = runs.flatMap((run) => run.repositories.map(({ path }) => path));
  expect(opened.toSorted()).toEqual(repositories.toSorted());
  const nothing = { work: 0, environments: 0, tokens: 0, workspaces: 0 };
  const left = async () => ({
    ...(await leftovers(world.server)),
    workspaces: readdirSync(join(world.runner.stateDir, "workspaces")).length,
  });
  await until(left, (present) => JSON.stringify(present) === JSON.stringify(nothing));
  const journal = world.journal();
  return Object.fromEntries(
    actions.map(({ id, metadata, status }) => [
      metadata.actionName,
      {
        attempts: status.attempt,
        lost: lostAttempts(status),
        began: journal.filter((line) => line === `+ ${id}`).length,
      },
    ]),
  );
}

async function expectSoundTrail(): Promise<void> {
  const { dataDir } = world.server;
  await world.server.stop();
  const { code, stdout } = await runCommand(["audit", "verify", "--data-dir", dataDir]);
  expect([code, stdout.trim().split("\n").at(-1)]).toEqual([0, "every chain holds"]);
}

const ONCE: Story = { attempts: 1, lost: [], began: 1 };
const AGAIN: Story = { attempts: 2, lost: [1], began: 2 };

/** What becomes of actions whose runner is lost at these moments, and of the report. */
function lostStories(moments: readonly Moment[]): Record<string, Story> {
  const stories = moments.map(({ name, isEarly, isRetried }) => [
    name,
    isRetried ? { ...AGAIN, began: isEarly ? 1 : 2 } : { ...ONCE, lost: [1] },
  ]);
  return {
    ...Object.fromEntries(stories),
    // The service had heard that it was over.
    "end-heard": ONCE,
    summed: ONCE,
    report: { ...AGAIN, began: 0 },
  };
}

describe("a runner that is killed at every moment of an action", () => {
  test("loses what the service had not heard: that is done again, once and for all to see", async () => {
    world = await createWorld({ leaseSeconds: 3600 });
    const moments = [...MOMENTS, ...UNANSWERED_BY_HOST];
    const runs = [await holdReport(world), await holdActions(world, moments), await holdLease(world)];
    await world.killRunner();
    await expireAllLeases(world.server);
    for (const run of runs) expect(await falseReports(world, run)).toEqual([]);
    for (const { release } of runs) release();
    await world.restartRunner();
    expect(await storiesOf(runs)).toEqual({
      ...lostStories(moments),
      "lease-unheard": { ...AGAIN, began: 1 },
    });
    await expectSoundTrail();
  });
});

describe("a server that is killed at every moment of an action", () => {
  test("and is soon back lets the runner go on as if nothing had been", async () => {
    world = await createWorld({ leaseSeconds: 3600 });
    const runs = [await holdReport(world), await holdActions(world, MOMENTS)];
    await world.killServer();
    await world.restartServer();
    for (const run of runs) expect(await falseReports(world, run)).toEqual([]);
    for (const { release } of runs) release();
    const names = [...MOMENTS.map(({ name }) => name), "summed"];
    expect(await storiesOf(runs)).toEqual({
      ...Object.fromEntries(names.map((name) => [name, ONCE])),
      report: { ...ONCE, began: 0 },
    });
    await expectSoundTrail();
  });

  test("and is away for longer than leases hold finds all of it lost: that is done again, once and for all to see", async () => {
    // Long enough for a busy machine to renew it; the runner counts it by its own clock.
    world = await createWorld({ leaseSeconds: 15 });
    const runs = [await holdReport(world), await holdActions(world, MOMENTS)];
    await world.killServer();
    const lost = () => world.runner.log().filter(({ outcome }) => outcome === "lost");
    await until(lost, (lines) => lines.length === MOMENTS.length + 1);
    await world.restartServer();
    for (const run of runs) expect(await falseReports(world, run)).toEqual([]);
    for (const { release } of runs) release();
    expect(await storiesOf(runs)).toEqual(lostStories(MOMENTS));
    await expectSoundTrail();
  });
});

describe("server and runner, killed in turn at any moment", () => {
  test("do every action to its end, once", async () => {
    const random = printedRandom("workflow-kill");
    // Long enough for the server to be back: three lost attempts would be one too many. A lease that the server gave
    // and the runner never heard of ends by then.
    world = await createWorld({ leaseSeconds: 30 });
    const run = await startFreely(world, 12);
    for (const kill of ["Server", "Runner", "Server"] as const) {
      // The moment is the point: no event could tell it.
      await new Promise((resolve) => setTimeout(resolve, random.integer(50, 1_500)));
      await world[`kill${kill}`]();
      await world[`restart${kill}`]();
      expect(await falseReports(world, run)).toEqual([]);
    }
    const stories = Object.values(await storiesOf([run]));
    for (const { attempts, began } of stories) expect(began).toBeLessThanOrEqual(attempts);
    await expectSoundTrail();
  });
});
