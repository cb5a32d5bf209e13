import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { StreamInputsResponse } from "#gen/runner/v1/agent_work_service_pb.js";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { type FakeRunner, runnerOf, succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import {
  type AgentFixture,
  createAgentFixture,
  type LeasedAgentExecution,
  leaseAgentExecution,
  leasedAgentExecution,
  startLeasedAgentExecution,
} from "../harness/leased-agent-execution.ts";
import { withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, startServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

/** What takes a few seconds on a machine that does nothing else. */
const LONG_MS = 600_000;

let server: ReachableServer;
let home: AgentFixture;
beforeAll(async () => {
  server = await startHostedServer({ args: LONG_LEASES });
  home = await createAgentFixture(server);
});
afterAll(stopAll);

const refusal = (answer: Answer) => [answer.status, answer.body.code, reasonOf(answer)];
const UNUSABLE = [400, "invalid_argument", "VALUE_UNUSABLE"];
const wakeIn = (delivery: StreamInputsResponse | undefined) => {
  const input = delivery?.input?.input;
  return input?.case === "wakeEvent" ? input.value : undefined;
};

/** Wake events among all inputs of a run, as people read them. */
async function wakesOf(run: LeasedAgentExecution): Promise<Answer["body"][]> {
  const inputs = await run.list();
  return inputs.flatMap(({ wakeEvent }) => (wakeEvent ? [wakeEvent] : []));
}

/** Lets the time of these timers come, whichever runs have them. */
function runOut(on: Pick<ReachableServer, "dataDir">, ...ids: readonly string[]): Promise<unknown> {
  return withServerData(on, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db)
        .updateTable("agent_interest")
        .set({ fires_at: now })
        .where("interest_id", "in", ids)
        .execute(),
    ),
  );
}

/** The same runner, as it calls another server. */
function runnerAt(at: ReachableServer, { runnerId, token, environmentClassId }: FakeRunner): FakeRunner {
  return runnerOf(at, { runnerId, token, environmentClassIds: [environmentClassId] });
}

/** A sub-agent of a run, which the runner takes on; its work. */
async function subagentOf(
  run: LeasedAgentExecution,
  of: AgentFixture = home,
): Promise<{ id: string; work: Answer["body"] }> {
  const { agentExecutionId: id } = await succeeded(
    of.runner.agent("StartSubagent", run.work, { prompt: "look" }),
  );
  return { id, work: await leaseAgentExecution(of.runner, id) };
}

describe("a timer", () => {
  test("wakes the run when it runs out, once", async () => {
    const run = await startLeasedAgentExecution(home);
    const inputs = run.inputs();
    const began = Date.now();
    await run.wait([{ id: "soon", timer: "1s" }]);
    const [delivery] = await inputs.until(1);
    expect(Date.now() - began).toBeGreaterThanOrEqual(1_000);
    expect(wakeIn(delivery)).toMatchObject({ interestId: "soon", payload: { case: "timer" } });
    expect(delivery?.input?.sender).toBeUndefined();
    expect((await run.get()).status.waitingInfo).toBeUndefined();
    // A repetition of the report that set it sets no other.
    await run.wait([{ id: "soon", timer: "1s" }]);
    expect((await run.get()).status.waitingInfo).toBeUndefined();
    inputs.cancel();
  });

  test("is shown with the time at which it runs out", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait([{ id: "later", timer: "3600s" }]);
    const { waitingInfo } = (await run.get()).status;
    expect(waitingInfo.interests).toMatchObject([{ id: "later", timer: { duration: "3600s" } }]);
    const firesAt = Date.parse(waitingInfo.interests[0].timer.firesAt);
    expect(firesAt - Date.parse(waitingInfo.waitingSince)).toBe(3_600_000);
  });

  test("is forgotten when the agent comes to wait for something else, and by a run that stops", async () => {
    const stopped = await startLeasedAgentExecution(home);
    await stopped.wait([{ id: "never", timer: "3600s" }]);
    await succeeded(home.runner.finish(stopped.work));
    const run = await startLeasedAgentExecution(home);
    await run.wait([{ id: "first", timer: "3600s" }]);
    await succeeded(run.report({ state: "STATE_RUNNING" }));
    await run.wait([{ id: "second", timer: "3600s" }]);
    await runOut(server, "never", "first");
    await runOut(server, "second");
    await until(
      () => run.list(),
      (inputs) => inputs.length > 0,
    );
    expect((await wakesOf(run)).map(({ interestId }) => interestId)).toEqual(["second"]);
    expect(await wakesOf(stopped)).toEqual([]);
  });

  test(
    "that runs out while the server is down wakes the run once when it is up again",
    async () => {
      const first = await startHostedServer({ args: LONG_LEASES });
      const here = await createAgentFixture(first);
      const run = await startLeasedAgentExecution(here);
      await run.wait([
        { id: "soon", timer: "3600s" },
        { id: "later", timer: "3600s" },
      ]);
      await first.stop();
      await runOut(first, "soon");
      const next = await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES });
      const { runner, token } = here;
      const resumed = leasedAgentExecution(
        { server: next, token, runner: runnerAt(next, runner) },
        run.id,
        run.work,
      );
      const [delivery] = await resumed.inputs().until(1);
      expect(wakeIn(delivery)?.interestId).toBe("soon");
      await next.stop();
      const last = await startHostedServer({ dataDir: first.dataDir, args: LONG_LEASES });
      const again = leasedAgentExecution(
        { server: last, token, runner: runnerAt(last, runner) },
        run.id,
        run.work,
      );
      await succeeded(again.report({ seenInputIds: [delivery?.input?.id] }));
      expect(Object.values(await again.receipts())).toEqual(["SEEN"]);
      expect((await again.get()).status.waitingInfo.interests).toMatchObject([{ id: "later" }]);
      await last.stop();
    },
    LONG_MS,
  );
});

describe("a timer and a server that is killed", () => {
  test(
    "again and again around the time that it runs out, wake the run once for each timer",
    async () => {
      let here = await startServer({ args: LONG_LEASES });
      const { dataDir } = here;
      const first = await createAgentFixture(here);
      const run = await startLeasedAgentExecution(first);
      const timers = Array.from({ length: 12 }, (_, index) => ({
        id: `timer ${index}`,
        timer: `${1 + index * 0.25}s`,
      }));
      await run.wait([...timers, { id: "later", timer: "3600s" }]);
      const seenBy = (current: ReachableServer) =>
        leasedAgentExecution({ ...first, server: current }, run.id, run.work);
      for (let kills = 0; kills < 3; kills++) {
        await here.kill();
        here = await startServer({ dataDir, args: LONG_LEASES });
      }
      const inputs = await until(
        () => seenBy(here).list(),
        (all) => all.length >= timers.length,
      );
      const ids = inputs.map(({ wakeEvent }) => wakeEvent.interestId);
      expect(ids.toSorted()).toEqual(timers.map(({ id }) => id).toSorted());
      expect((await seenBy(here).get()).status.waitingInfo.interests).toMatchObject([{ id: "later" }]);
      await here.stop();
    },
    LONG_MS,
  );
});

describe("the end of a sub-agent", () => {
  test("wakes its parent once, with why it failed", async () => {
    const run = await startLeasedAgentExecution(home);
    const inputs = run.inputs();
    const [good, bad] = [await subagentOf(run), await subagentOf(run)];
    await run.wait([
      { id: "good", subAgentId: good.id },
      { id: "bad", subAgentId: bad.id },
    ]);
    await succeeded(home.runner.finish(good.work));
    expect(wakeIn((await inputs.until(1))[0])).toMatchObject({
      interestId: "good",
      payload: { case: "subAgent", value: { executionId: good.id, failureMessage: "" } },
    });
    const failure = { reason: "agent_failed", message: "it fell over" };
    await succeeded(home.runner.finish(bad.work, "OUTCOME_FAILED", { failure }));
    const [wake] = await wakesOf(run);
    expect(wake).toEqual({
      interestId: "bad",
      subAgent: { executionId: bad.id, failureMessage: "it fell over" },
    });
    expect((await run.get()).status.waitingInfo).toBeUndefined();
    inputs.cancel();
  });

  test("that came before it was waited for wakes at once", async () => {
    const run = await startLeasedAgentExecution(home);
    const { id, work } = await subagentOf(run);
    await succeeded(home.runner.finish(work));
    await run.wait([{ id: "late", subAgentId: id }]);
    expect(await wakesOf(run)).toMatchObject([{ interestId: "late", subAgent: { executionId: id } }]);
  });

  test("wakes once also who waits for it again, not having got the news", async () => {
    const run = await startLeasedAgentExecution(home);
    const [first, second] = [await subagentOf(run), await subagentOf(run)];
    const waitFor = ({ id }: { id: string }) => ({ id: `end of ${id}`, subAgentId: id });
    await run.wait([waitFor(first), waitFor(second)]);
    const inputs = run.inputs();
    for (const { work } of [first, second]) await succeeded(home.runner.finish(work));
    const [delivery] = await inputs.until(1);
    await run.begin(delivery?.input?.id ?? "");
    await run.wait([waitFor(second)]);
    await inputs.until(2);
    expect((await wakesOf(run)).map(({ interestId }) => interestId)).toEqual([]);
    const wakes = inputs.messages.map((message) => wakeIn(message)?.interestId);
    expect(wakes).toEqual([first, second].map(({ id }) => `end of ${id}`));
    expect((await run.get()).status.waitingInfo).toBeUndefined();
    inputs.cancel();
  });
});

describe("a phase of an environment", () => {
  /** Another environment, which nobody has brought up yet. */
  async function environment(of: AgentFixture): Promise<string> {
    const { environment } = await succeeded(
      post(server, "EnvironmentService/CreateEnvironment", {}, of.token),
    );
    return environment.id;
  }
  const wait = (id: string, environmentId: string, phase: string) => ({
    id,
    environment: { environmentId, phase },
  });

  test("wakes who waits for it or for any, and who waits for one that will not come", async () => {
    const here = await createAgentFixture(server);
    const run = await startLeasedAgentExecution(here);
    const [up, failing] = [await environment(here), await environment(here)];
    await run.wait([
      wait("up", up, "running"),
      wait("down", up, "stopped"),
      wait("any", up, ""),
      wait("never", failing, "running"),
    ]);
    const failure = { reason: "no_disk", message: "the disk is full" };
    for (let count = 0; count < 2; count++) {
      const work = await here.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
      const isUp = work.environment.environment.id === up;
      await succeeded(here.runner.finish(work, isUp ? "OUTCOME_DONE" : "OUTCOME_FAILED", { failure }));
    }
    const wakes = await wakesOf(run);
    const wake = (environmentId: string, failureMessage: string[] = []) => ({
      environmentId,
      phase: "running",
      failureMessage,
    });
    expect(Object.fromEntries(wakes.map(({ interestId, environment }) => [interestId, environment]))).toEqual(
      {
        up: wake(up),
        any: wake(up),
        never: wake(failing, ["the disk is full"]),
      },
    );
    await succeeded(post(server, "EnvironmentService/DeleteEnvironment", { environmentId: up }, here.token));
    const work = await here.runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    await succeeded(here.runner.finish(work));
    const last = (await wakesOf(run)).find(({ interestId }) => interestId === "down");
    expect(last.environment).toEqual({
      environmentId: up,
      phase: "stopped",
      failureMessage: ["the environment was deleted"],
    });
  });

  test("that has been reached already wakes at once", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait([wait("here", run.environmentId, "running"), wait("any", run.environmentId, "")]);
    expect(await wakesOf(run)).toMatchObject([
      { interestId: "here", environment: { environmentId: run.environmentId, phase: "running" } },
    ]);
    expect((await run.get()).status.waitingInfo.interests).toMatchObject([{ id: "any" }]);
  });
});

describe("a message of a user", () => {
  test("ends the wait for one, and is delivered once, as itself", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait([
      { id: "word", userMessage: true },
      { id: "time", timer: "3600s" },
    ]);
    await run.say("hello");
    expect((await run.list()).map(({ id }) => id)).toEqual(["hello"]);
    expect((await run.get()).status.waitingInfo.interests).toMatchObject([{ id: "time" }]);
  });
});

describe("a wake event of a runner", () => {
  test("fires an interest that the run registered, once", async () => {
    const run = await startLeasedAgentExecution(home);
    await run.wait([{ id: "rebuild", timer: "3600s" }]);
    const wake = (interestId: string, payload: object) =>
      run.send({ wakeEvent: { interestId, ...payload } }, {}, home.runner.token);
    const rebuilt = { devcontainerRebuild: { environmentId: run.environmentId, phase: "ready" } };
    for (const id of ["", "other"]) expect(refusal(await wake(id, rebuilt))).toEqual(UNUSABLE);
    expect(refusal(await wake("rebuild", {}))[2]).toBe("CONSTRAINT_VIOLATED");
    const answers = await Promise.all(Array.from({ length: 5 }, () => wake("rebuild", rebuilt)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400]);
    expect(await wakesOf(run)).toMatchObject([{ interestId: "rebuild", ...rebuilt }]);
    expect((await run.list())[0].sender.id).toBe(home.runner.runnerId);
  });
});
