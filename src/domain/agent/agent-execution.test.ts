import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import {
  type AgentExecution,
  AgentExecutionRole,
  AgentMode,
  AgentExecution_Phase as Phase,
  AgentExecutionFailureReason as Reason,
} from "#gen/service/v1/agent_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { replay } from "../../../test/harness/seed.ts";
import {
  begunAgentExecution,
  changedAgentExecution,
  failingAgentExecution,
  hasStopped,
  isStopRequested,
  lostAgentExecution,
  newAgentExecution,
  phaseOfAgentExecution,
  stoppedAgentExecution,
  stoppingAgentExecution,
  transitionedAgentExecution,
  withProgress,
} from "./agent-execution.ts";
import { initialProgress } from "./agent-progress.ts";
import { AGENT_TRANSITIONS } from "./agent-transitions.ts";

const NOW = Date.UTC(2026, 0, 1);
const LATER = NOW + 60_000;
const run = () =>
  newAgentExecution({
    id: "run",
    session: "first",
    agentId: "agent",
    creator: create(SubjectSchema, { id: "creator", principal: Principal.USER }),
    role: AgentExecutionRole.DEFAULT,
    name: "Fix the build",
    annotations: { "example.org/ticket": "7" },
    sessionId: "session",
    parentExecutionId: "",
    workflowActionId: undefined,
    codeContext: undefined,
    extAgentSettings: undefined,
    environmentId: "environment",
    createdEnvironment: true,
    now: NOW,
  });
const running = () => transitionedAgentExecution(run(), "begin");
const waiting = () => transitionedAgentExecution(running(), "wait");

test("a new run waits, and tells where it will work", () => {
  const { metadata, spec, status } = run();
  expect([phaseOfAgentExecution(run()), spec?.desiredPhase]).toEqual([Phase.PENDING, Phase.RUNNING]);
  expect([spec?.session, status?.session, spec?.specVersion, status?.statusVersion]).toEqual([
    "first",
    "first",
    1n,
    1n,
  ]);
  expect(status?.usedEnvironments).toMatchObject([{ environmentId: "environment", createdByAgent: true }]);
  expect(metadata?.workflowActionId).toBeUndefined();
  expect(spec?.extAgentSettings).toBeUndefined();
});

test("a run that waits for input goes on waiting through the loss of its runner and the next lease", () => {
  expect(begunAgentExecution(waiting())).toBeUndefined();
  expect(lostAgentExecution(waiting())).toBeUndefined();
  expect(lostAgentExecution(run())).toBeUndefined();
  expect(phaseOfAgentExecution(lostAgentExecution(running()) ?? run())).toBe(Phase.PENDING);
});

describe("a run that is asked to stop", () => {
  test("is wanted stopped from then on, under another mark, and still where it was", () => {
    const stopping = stoppingAgentExecution(running(), { session: "second", now: LATER });
    expect(
      stopping && [phaseOfAgentExecution(stopping), stopping.spec?.session, stopping.status?.session],
    ).toEqual([Phase.RUNNING, "second", "first"]);
    expect(stopping?.spec?.specVersion).toBe(2n);
    expect(stopping?.metadata?.updatedAt && timestampMs(stopping.metadata.updatedAt)).toBe(LATER);
    expect(stopping && stoppingAgentExecution(stopping, { session: "third", now: LATER })).toBeUndefined();
  });

  test("keeps the reason for the stop, whatever its runner says at the end", () => {
    const lost = { reason: Reason.ENVIRONMENT, message: "its environment was stopped" };
    const stopping = failingAgentExecution(
      stoppingAgentExecution(running(), { session: "second", now: LATER }) ?? run(),
      lost,
    );
    const failure = { reason: Reason.AGENT_EXECUTION, message: "killed" };
    const { spec, status } = stoppedAgentExecution(stopping, {
      event: "stop",
      failure,
      session: "third",
      now: LATER,
    });
    expect([spec?.session, status?.session, spec?.specVersion]).toEqual(["second", "second", 2n]);
    expect([status?.failureReason, status?.failureMessage]).toEqual([lost.reason, lost.message]);
  });
});

test("a run that ends by itself is wanted stopped, too, and waits for nothing any more", () => {
  const waits = changedAgentExecution(waiting(), (status) => {
    status.waitingInfo = { $typeName: "service.v1.AgentExecution.WaitingInfo", waitId: "w", interests: [] };
  });
  const ended = stoppedAgentExecution(waits, { event: "end", session: "second", now: LATER });
  expect([hasStopped(ended), isStopRequested(ended), ended.status?.failureMessage]).toEqual([true, true, ""]);
  expect(ended.status?.waitingInfo).toBeUndefined();
});

test("what is answered has the progress and the sub-agents, and the row stays as it was", () => {
  const stored = running();
  const progress = { ...initialProgress(AgentMode.PLANNING), changes: 3 };
  const { status } = withProgress(stored, progress, []);
  expect([status?.mode, status?.statusVersion]).toEqual([AgentMode.PLANNING, 5n]);
  expect([stored.status?.mode, stored.status?.statusVersion]).toEqual([AgentMode.UNSPECIFIED, 2n]);
});

test("whatever happens in whatever order, no run leaves the table, and versions only rise", () => {
  const events = [...new Set(AGENT_TRANSITIONS.map(([, event]) => event))];
  type Step = (present: AgentExecution) => AgentExecution | undefined;
  const end = { session: "x", now: LATER } as const;
  const failure = { reason: Reason.SERVICE, message: "lost" };
  const steps: Step[] = [
    ...events.map(
      (event): Step =>
        (present) =>
          transitionedAgentExecution(present, event),
    ),
    begunAgentExecution,
    lostAgentExecution,
    (present) => stoppingAgentExecution(present, end),
    (present) => stoppedAgentExecution(present, { ...end, event: "stop" }),
    (present) => stoppedAgentExecution(present, { ...end, event: "end" }),
    (present) => stoppedAgentExecution(present, { ...end, event: "stop", failure }),
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...steps), { maxLength: 30 }), (taken) => {
      let present = run();
      for (const step of taken) {
        let after: AgentExecution | undefined;
        try {
          after = step(present);
        } catch (error) {
          expect((error as Error).message).toMatch(
            /^the event "\w+" is not allowed while the agent run is [A-Z_]+$/,
          );
        }
        if (!after) continue;
        const [from, to] = [phaseOfAgentExecution(present), phaseOfAgentExecution(after)];
        if (from !== to)
          expect(AGENT_TRANSITIONS.some(([one, , other]) => one === from && other === to)).toBe(true);
        expect((after.status?.statusVersion ?? 0n) >= (present.status?.statusVersion ?? 0n)).toBe(true);
        expect((after.spec?.specVersion ?? 0n) >= (present.spec?.specVersion ?? 0n)).toBe(true);
        present = after;
      }
    }),
    replay,
  );
});
