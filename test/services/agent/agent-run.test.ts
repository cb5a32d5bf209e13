import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { FinishWorkRequest_Outcome as Outcome } from "#gen/runner/v1/work_service_pb.js";
import {
  AgentMode,
  AgentExecution_Phase as Phase,
  AgentExecutionFailureReason as Reason,
} from "#gen/service/v1/agent_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { endExpiredLeases } from "../../../src/jobs/lease-expiry.ts";
import { wholeOutput } from "../../../src/store/agent/agent-conversation.ts";
import { findOutput } from "../../../src/store/agent/agent-output.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { LEASE_MS, type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { type Services, servicesOf } from "../services.ts";
import { addAgent, handleOf, type Runs, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let own: Services;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  own = servicesOf(made, caller);
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, caller.organizationId, { isDefault: true });
});
afterEach(() => made.close());

const expire = async () => {
  made.clock.now += LEASE_MS;
  await endExpiredLeases(made.store, made.clock.now);
};
const environmentOf = async (id: string) => {
  const environmentId = (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
  return (await own.environments.getEnvironment({ environmentId })).environment;
};
const phaseOf = async (id: string) => (await runs.get(id))?.status?.phase;
const queued = () => builderOf(made.store.reader).selectFrom("work").select(["kind", "subject_id"]).execute();
const send = (agentExecutionId: string, content: string) =>
  runs.agents.sendToAgentExecution({
    agentExecutionId,
    input: {
      case: "userInput",
      value: { id: content, inputs: [{ input: { case: "text", value: { content } } }] },
    },
  });

describe("a run", () => {
  test("waits for its environment, then for a runner, and runs", async () => {
    const id = await runs.start({ name: "Fix the build" });
    expect(await runs.lease(WorkKind.AGENT)).toEqual([]);
    expect((await environmentOf(id))?.metadata).toMatchObject({
      name: "Fix the build",
      creator: { id: caller.subject.id },
    });
    await runs.bringUp();
    expect(await phaseOf(id)).toBe(Phase.PENDING);
    const given = await runs.takeOn();
    expect(given.work).toMatchObject({
      case: "agent",
      value: {
        agentExecution: { id, status: { phase: Phase.RUNNING, mode: AgentMode.EXECUTION } },
        environment: { status: { phase: EnvironmentPhase.RUNNING } },
        command: ["coder", "--quiet"],
        lastSequence: 0n,
      },
    });
    expect(made.keys.readToken(given.environmentToken)?.kind).toBe("environment");
    expect(await phaseOf(id)).toBe(Phase.RUNNING);
  });

  test("in an environment that is up goes to its runner at once, and to no other", async () => {
    const { id } = await runs.running();
    const codeContext = {
      context: { case: "environmentId", value: (await environmentOf(id))?.id ?? "" },
    } as const;
    const other = runsOn(made, caller, await registeredRunner(made, caller, { name: "south" }));
    const second = await runs.start({ codeContext });
    expect(await other.lease(WorkKind.AGENT)).toEqual([]);
    expect((await runs.takeOn()).work).toMatchObject({ value: { agentExecution: { id: second } } });
  });

  test("that is routed goes to that runner, no matter which has the environment", async () => {
    const { id } = await runs.running();
    const south = await registeredRunner(made, caller, { name: "south" });
    const codeContext = {
      context: { case: "environmentId", value: (await environmentOf(id))?.id ?? "" },
    } as const;
    const routed = await runs.start({ codeContext, runnerId: south.runnerId });
    expect(await runs.lease(WorkKind.AGENT)).toEqual([]);
    const given = await runsOn(made, caller, south).takeOn();
    expect(given.work).toMatchObject({ value: { agentExecution: { id: routed } } });
  });

  test("leaves the tokens of others in its environment alone", async () => {
    const { id, given } = await runs.running();
    const codeContext = {
      context: { case: "environmentId", value: (await environmentOf(id))?.id ?? "" },
    } as const;
    await runs.start({ codeContext });
    const second = await runs.takeOn();
    const hashes = [given, second].map(({ environmentToken }) => made.keys.readToken(environmentToken)?.hash);
    const rows = await builderOf(made.store.reader)
      .selectFrom("token")
      .select("hash")
      .where("kind", "=", "environment")
      .execute();
    for (const hash of hashes)
      expect(rows.some((row) => Buffer.from(row.hash).equals(Buffer.from(hash ?? [])))).toBe(true);
  });

  test("ends with its program, and stops the environment that was made for it", async () => {
    const { id, given } = await runs.running();
    await runs.finish(given);
    const ended = await runs.get(id);
    expect([ended?.status?.phase, ended?.spec?.desiredPhase, ended?.status?.failureMessage]).toEqual([
      Phase.STOPPED,
      Phase.STOPPED,
      "",
    ]);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.STOPPED);
    expect((await queued()).map(({ kind }) => kind)).toEqual([WorkKind.ENVIRONMENT]);
  });

  test("leaves an environment that was there as it is", async () => {
    const { environment } = await own.environments.createEnvironment({
      spec: { machine: { class: runner.classId } },
    });
    await runs.bringUp();
    const id = await runs.start({
      codeContext: { context: { case: "environmentId", value: environment?.id ?? "" } },
    });
    await runs.finish(await runs.takeOn());
    expect(await phaseOf(id)).toBe(Phase.STOPPED);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.RUNNING);
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    const after = await own.environments.getEnvironment({ environmentId: environment?.id ?? "" });
    expect(after.environment?.spec?.desiredPhase).toBe(EnvironmentPhase.RUNNING);
  });

  test("fails as its runner says", async () => {
    const { id, given } = await runs.running();
    await runs.finish(given, Outcome.FAILED, { reason: "model_unreachable", message: "the model is asleep" });
    expect((await runs.get(id))?.status).toMatchObject({
      phase: Phase.STOPPED,
      failureReason: Reason.LLM_INTEGRATION,
      failureMessage: "the model is asleep",
    });
  });

  test("whose agent is no longer registered fails instead of beginning", async () => {
    const id = await runs.start();
    await runs.bringUp();
    await made.store.write({ id: "operator", principal: 0 }, "test", ({ db }) =>
      builderOf(db).deleteFrom("agent").execute(),
    );
    expect(await runs.lease(WorkKind.AGENT)).toEqual([]);
    expect((await runs.get(id))?.status).toMatchObject({
      phase: Phase.STOPPED,
      failureReason: Reason.SERVICE,
    });
  });
});

describe("a run whose runner is lost", () => {
  test("waits for the next attempt, and the turn that it was in has an error in its answers", async () => {
    const { id, given } = await runs.running();
    await send(id, "go on");
    await made.store.write({ id: "test", principal: 0 }, "test", ({ db }) =>
      // As the stream of inputs delivers it.
      builderOf(db)
        .updateTable("agent_input")
        .set({ receipt: 2, fence: Number(given.fence) })
        .execute(),
    );
    await runs.work.reportAgent({
      ...runs.named(given),
      seenInputIds: ["go on"],
      blocks: [{ sequence: 1n, block: { case: "text", value: { content: "well" } } }],
      state: State.RUNNING,
    });
    await expire();
    expect(await phaseOf(id)).toBe(Phase.PENDING);
    const [, lost] = await findOutput(
      made.store.reader,
      wholeOutput(await handleOf(made, caller, id)),
      0,
      10,
    );
    expect(lost).toMatchObject({
      sequence: 2n,
      inputId: "go on",
      block: { case: "error", value: { message: "the runner was lost in the middle of a turn" } },
    });
    const next = await runs.takeOn();
    expect([next.attempt, next.fence]).toEqual([1, 2n]);
    expect(next.work).toMatchObject({ value: { lastSequence: 2n } });
  });

  test("has no error in its answers where no turn was going on", async () => {
    const { id } = await runs.running();
    await expire();
    expect(await findOutput(made.store.reader, wholeOutput(await handleOf(made, caller, id)), 0, 10)).toEqual(
      [],
    );
    expect((await runs.takeOn()).attempt).toBe(2);
  });

  test("fails after three attempts that came to nothing", async () => {
    const { id } = await runs.running();
    for (const attempt of [2, 3]) {
      await expire();
      expect((await runs.takeOn()).attempt).toBe(attempt);
    }
    await expire();
    expect((await runs.get(id))?.status).toMatchObject({
      phase: Phase.STOPPED,
      failureReason: Reason.SERVICE,
      failureMessage: "the runner was lost, or gave the run back, in each of 3 attempts",
    });
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.STOPPED);
  });

  test("goes on waiting for input, however often", async () => {
    const { id, given } = await runs.running();
    await runs.work.reportAgent({ ...runs.named(given), state: State.WAITING });
    for (let loss = 0; loss < 5; loss += 1) {
      await expire();
      expect(await phaseOf(id)).toBe(Phase.WAITING_FOR_INPUT);
      expect((await runs.takeOn()).attempt).toBe(1);
    }
  });

  test("is given back at once by a runner that cannot go on", async () => {
    const { id, given } = await runs.running();
    await runs.finish(given, Outcome.RELEASED);
    expect(await phaseOf(id)).toBe(Phase.PENDING);
    expect((await runs.takeOn()).attempt).toBe(2);
  });

  test("has stopped when it was asked to before", async () => {
    const { id } = await runs.running();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    await expire();
    expect((await runs.get(id))?.status).toMatchObject({ phase: Phase.STOPPED, failureMessage: "" });
  });
});

describe("to stop a run", () => {
  test("that no runner has stops it at once", async () => {
    const id = await runs.start();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await phaseOf(id)).toBe(Phase.STOPPED);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.STOPPED);
    expect(await queued()).toEqual([]);
  });

  test("that a runner has tells the runner, and waits for its word", async () => {
    const { id, given } = await runs.running();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    const stopping = await runs.get(id);
    expect([stopping?.status?.phase, stopping?.spec?.desiredPhase]).toEqual([Phase.RUNNING, Phase.STOPPED]);
    expect(stopping?.spec?.session).not.toBe(stopping?.status?.session);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.RUNNING);
    expect(await runner.renewLease(runs.named(given))).toMatchObject({ stop: true });
    await runs.finish(given, Outcome.STOPPED);
    const stopped = await runs.get(id);
    expect(stopped?.status).toMatchObject({
      phase: Phase.STOPPED,
      failureMessage: "",
      session: stopping?.spec?.session,
    });
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.STOPPED);
  });

  test("changes nothing the second time", async () => {
    const { id } = await runs.running();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    const before = await made.history(caller);
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await made.history(caller)).toEqual(before);
  });

  test("stops its sub-agents, and their environment with the last of them", async () => {
    const { id, given } = await runs.running();
    const children: string[] = [];
    for (const prompt of ["one", "two"]) {
      children.push((await runs.work.startSubagent({ ...runs.named(given), prompt })).agentExecutionId);
    }
    const child = await runs.takeOn();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    expect(await Promise.all(children.map(phaseOf))).toEqual([Phase.RUNNING, Phase.STOPPED]);
    expect((await runs.get(id))?.status?.subagents.map(({ phase }) => phase)).toEqual([
      Phase.RUNNING,
      Phase.STOPPED,
    ]);
    await runs.finish(given, Outcome.STOPPED);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.RUNNING);
    await runs.finish(child, Outcome.STOPPED);
    expect((await environmentOf(id))?.spec?.desiredPhase).toBe(EnvironmentPhase.STOPPED);
    expect(await phaseOf(children[0] ?? "")).toBe(Phase.STOPPED);
  });
});

describe("to delete a run", () => {
  test("is refused until it has stopped", async () => {
    const { id, given } = await runs.running();
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    await expect(runs.agents.deleteAgentExecution({ agentExecutionId: id })).rejects.toMatchObject({
      reason: ErrorReason.PHASE_UNSUITABLE,
      metadata: { phase: "RUNNING" },
    });
    await runs.finish(given, Outcome.STOPPED);
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    await expect(runs.get(id)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
    await expect(runs.agents.deleteAgentExecution({ agentExecutionId: id })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });

  test("takes everything of it, and the environment that was made for it", async () => {
    const { id, given } = await runs.running({ annotations: { "example.org/a": "b" } });
    const environmentId = (await environmentOf(id))?.id ?? "";
    await send(id, "go on");
    await runs.finish(given);
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    for (const table of ["agent_execution", "agent_execution_annotation", "agent_input"] as const) {
      expect(await builderOf(made.store.reader).selectFrom(table).selectAll().execute()).toEqual([]);
    }
    const { environment } = await own.environments.getEnvironment({ environmentId });
    expect(environment?.spec?.desiredPhase).toBe(EnvironmentPhase.DELETED);
  });

  test("removes an environment at once that no runner came to", async () => {
    const id = await runs.start();
    const environmentId = (await environmentOf(id))?.id ?? "";
    await runs.agents.stopAgentExecution({ agentExecutionId: id });
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    await expect(own.environments.getEnvironment({ environmentId })).rejects.toMatchObject({
      reason: ErrorReason.NOT_FOUND,
    });
  });

  test("leaves the environment to another run that works in it, and it goes with that one", async () => {
    const { id, given } = await runs.running();
    const environmentId = (await environmentOf(id))?.id ?? "";
    const heir = await runs.start({
      codeContext: { context: { case: "environmentId", value: environmentId } },
    });
    await runs.finish(given);
    await runs.agents.deleteAgentExecution({ agentExecutionId: id });
    const wanted = async () =>
      (await own.environments.getEnvironment({ environmentId })).environment?.spec?.desiredPhase;
    expect(await wanted()).toBe(EnvironmentPhase.RUNNING);
    await runs.agents.stopAgentExecution({ agentExecutionId: heir });
    expect(await wanted()).toBe(EnvironmentPhase.STOPPED);
    await runs.agents.deleteAgentExecution({ agentExecutionId: heir });
    expect(await wanted()).toBe(EnvironmentPhase.DELETED);
  });
});
