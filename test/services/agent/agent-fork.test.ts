import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as State } from "#gen/runner/v1/agent_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  AgentForkAbility as Ability,
  AgentMode,
  AgentExecution_Phase as Phase,
} from "#gen/service/v1/agent_pb.js";
import { ToolKind } from "#gen/service/v1/approval_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { insertTestMember } from "../../harness/member.ts";
import { openTestStore, type TestStore, userOf } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner } from "../runner/work-service.ts";
import { servicesOf } from "../services.ts";
import { addAgent, inputsOf, type Runs, runsOn } from "./agents.ts";

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, caller.organizationId, { isDefault: true, takesSettings: true });
});
afterEach(() => made.close());

const REFUSED = { reason: ErrorReason.PHASE_UNSUITABLE };
const UNUSABLE = { reason: ErrorReason.VALUE_UNUSABLE };
const report = (given: Work, more: object) => runs.work.reportAgent({ ...runs.named(given), ...more });
const fork = async (agentExecutionId: string, more: object = {}, by: Runs = runs) =>
  (await by.agents.forkAgentExecution({ agentExecutionId, ...more })).agentExecutionId;

/** Has the agent take a message, and answer it in so many blocks. */
async function takeTurn(
  { id, given }: { readonly id: string; readonly given: Work },
  inputId: string,
  ...sequences: readonly number[]
): Promise<void> {
  const message = { id: inputId, inputs: [{ input: { case: "text" as const, value: { content: "go" } } }] };
  await runs.agents.sendToAgentExecution({
    agentExecutionId: id,
    input: { case: "userInput", value: message },
  });
  const stream = inputsOf(made, runner, given);
  await stream.next();
  await stream.leave();
  await report(given, { state: State.RUNNING, seenInputIds: [inputId] });
  const blocks = sequences.map((sequence) => ({
    sequence: BigInt(sequence),
    inputId,
    block: { case: "text" as const, value: { content: `${inputId} ${sequence}` } },
  }));
  await report(given, { state: State.WAITING, blocks });
}

/** A run that waits, of an agent that can fork from there. */
async function waiting(forkAbility: Ability, req: object = {}) {
  const run = await runs.running(req);
  await report(run.given, { state: State.WAITING, forkAbility });
  return run;
}
const listed = async (agentExecutionId: string) => {
  const { blocks } = await runs.agents.listAgentOutputBlocks({ agentExecutionId });
  return blocks.map(({ block }) => (block.case === "text" ? block.value.content : block.case));
};

test("a fork knows the conversation up to the end of a turn, and tells its runner which", async () => {
  const source = await waiting(Ability.ANY_TURN, {
    name: "Fix it",
    mode: AgentMode.PLANNING,
    extAgentSettings: { model: 2 },
  });
  await takeTurn(source, "one", 1, 2);
  await takeTurn(source, "two", 3);
  const before = await runs.get(source.id);
  const id = await fork(source.id, { sequence: 2n, name: "Another way" });
  const given = await runs.takeOn();
  expect(given.work).toMatchObject({
    value: {
      agentExecution: {
        id,
        metadata: { name: "Another way", forkedFrom: source.id, resumedFrom: "", conversationId: "" },
        spec: { extAgentSettings: { model: 2 } },
        status: { mode: AgentMode.PLANNING },
      },
      conversationId: id,
      lastSequence: 2n,
      fork: { conversationId: source.id, agentExecutionId: source.id, inputId: "one" },
    },
  });
  await report(given, { state: State.WAITING, forkAbility: Ability.ANY_TURN });
  await takeTurn({ id, given }, "other", 3);
  expect(await listed(id)).toEqual(["one 1", "one 2", "other 3"]);
  expect(await listed(source.id)).toEqual(["one 1", "one 2", "two 3"]);
  expect(await runs.get(source.id)).toEqual(before);
  // Branches do not prevent going on with the run itself.
  await runs.agents.stopAgentExecution({ agentExecutionId: source.id });
  await runs.finish(source.given);
  await runs.start({ resumeFrom: source.id });
  const atEnd = await fork(id);
  expect((await runs.get(atEnd))?.metadata?.earlierSequence).toBe(3n);
});

test("a fork is refused where the agent cannot, and where no turn ends", async () => {
  const unknown = await runs.running();
  await expect(fork(unknown.id)).rejects.toMatchObject(REFUSED);
  const none = await waiting(Ability.NONE);
  await expect(fork(none.id)).rejects.toMatchObject(REFUSED);
  const latest = await waiting(Ability.LATEST);
  await takeTurn(latest, "one", 1, 2);
  await takeTurn(latest, "two", 3);
  await expect(fork(latest.id, { sequence: 2n })).rejects.toMatchObject(REFUSED);
  await fork(latest.id, { sequence: 3n });
  // The fork's turn comes first.
  await runs.takeOn();
  const any = await waiting(Ability.ANY_TURN);
  await takeTurn(any, "one", 1, 2);
  await takeTurn(any, "two", 3);
  await expect(fork(any.id, { sequence: 1n })).rejects.toMatchObject(REFUSED);
  await expect(fork(any.id, { sequence: 4n })).rejects.toMatchObject(UNUSABLE);
  await report(any.given, { state: State.RUNNING });
  await expect(fork(any.id)).rejects.toMatchObject(REFUSED);
  await fork(any.id, { sequence: 2n });
});

test("what is gone of a conversation cannot be forked, and a fork keeps its place without its source", async () => {
  const source = await waiting(Ability.ANY_TURN);
  await takeTurn(source, "one", 1);
  const first = await fork(source.id);
  const given = await runs.takeOn();
  await report(given, { state: State.WAITING, forkAbility: Ability.ANY_TURN });
  await takeTurn({ id: first, given }, "two", 2);
  const second = await fork(first, { sequence: 1n });
  await runs.agents.stopAgentExecution({ agentExecutionId: source.id });
  await runs.finish(source.given);
  expect((await runs.get(source.id))?.status?.phase).toBe(Phase.STOPPED);
  await runs.agents.deleteAgentExecution({ agentExecutionId: source.id });
  expect(await listed(first)).toEqual(["two 2"]);
  await expect(fork(first, { sequence: 1n })).rejects.toMatchObject(UNUSABLE);
  expect((await runs.takeOn()).work).toMatchObject({
    value: { agentExecution: { id: second }, fork: { conversationId: source.id, inputId: "one" } },
  });
});

test("everyone who may send to a run may fork it", async () => {
  const { organizationId } = caller;
  const email = "second@example.org";
  const second = await insertTestMember(made.store, made.keys, { organizationId, email });
  const tokenId = await made.issueTokenId(second.userId);
  const user = userOf({ ...caller, accountId: second.accountId, tokenId }, second.userId);
  const theirs = runsOn(made, { ...user, role: "member" }, runner);
  const ours = await waiting(Ability.ANY_TURN);
  await expect(fork(ours.id, {}, theirs)).rejects.toMatchObject({ reason: ErrorReason.NOT_FOUND });
  const { id, given } = await theirs.running();
  await report(given, { state: State.WAITING, forkAbility: Ability.ANY_TURN });
  await fork(id, {}, theirs);
});

test("a fork asks people as its source does, though a service account forks it", async () => {
  const toolCall = { kind: ToolKind.EXECUTE, title: "Run", tool: "shell" };
  const request = { toolCallId: "1", request: { case: "toolCall" as const, value: toolCall } };
  const robot: Caller = {
    ...caller,
    subject: { ...caller.subject, principal: Principal.SERVICE_ACCOUNT },
  };
  const asks = async (given: Work) =>
    (await runs.work.requestApproval({ ...runs.named(given), ...request })).answer.case;
  const theirs = runsOn(made, robot, runner);
  expect(await asks((await theirs.running()).given)).toBe("policy");
  const source = await waiting(Ability.ANY_TURN);
  const first = await fork(source.id, {}, theirs);
  const given = await runs.takeOn();
  expect(await asks(given)).toBe("approval");
  await report(given, { state: State.WAITING, forkAbility: Ability.ANY_TURN });
  await fork(first, {}, theirs);
  expect(await asks(await runs.takeOn())).toBe("approval");
});

test("a fork needs the environment of its source", async () => {
  const { id } = await waiting(Ability.ANY_TURN);
  const environmentId = (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
  await servicesOf(made, caller).environments.deleteEnvironment({ environmentId });
  await expect(fork(id)).rejects.toMatchObject({ reason: ErrorReason.PENDING_DELETION });
});
