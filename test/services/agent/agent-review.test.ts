import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { ReportAgentRequest_State as AgentState } from "#gen/runner/v1/agent_work_service_pb.js";
import { EnvironmentWorkService as EnvironmentWorkContract } from "#gen/runner/v1/environment_work_service_pb.js";
import type { Work } from "#gen/runner/v1/work_pb.js";
import {
  type AgentReviewCommentSchema,
  type AgentReviewSchema,
  AgentReviewComment_Side as Side,
  AgentReviewComment_State as State,
} from "#gen/service/v1/agent_review_pb.js";
import { AgentReviewService as ReviewContract } from "#gen/service/v1/agent_review_service_pb.js";
import { DiffBase, EnvironmentFileDiff_Kind as Kind } from "#gen/service/v1/environment_changes_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { ConversationSharingPolicy as Sharing } from "#gen/service/v1/organization_pb.js";
import { OrganizationService as OrganizationContract } from "#gen/service/v1/organization_service_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import { OrganizationService } from "../../../src/services/access/organization-service.ts";
import { runsInEnvironment } from "../../../src/services/agent/reading/runs-in-environment.ts";
import { AgentReviewService } from "../../../src/services/agent/review/agent-review-service.ts";
import { EnvironmentWorkService } from "../../../src/services/environment/environment-work-service.ts";
import { builderOf } from "../../../src/store/query-builder.ts";
import { insertTestMember } from "../../harness/member.ts";
import { withRawData } from "../../harness/raw-data.ts";
import { storageProblems } from "../../harness/stored-bytes.ts";
import { openTestStore, operationsOf, type TestStore, userOf } from "../../harness/test-store.ts";
import { type RegisteredRunner, registeredRunner, workDependencies } from "../runner/work-service.ts";
import { addAgent, agentsOf, inputsOf, type Runs, runsOn } from "./agents.ts";

type Comment = MessageInitShape<typeof AgentReviewCommentSchema>;
type Review = MessageInitShape<typeof AgentReviewSchema>;

let made: TestStore;
let caller: Caller;
let runner: RegisteredRunner;
let runs: Runs;
beforeEach(async () => {
  made = openTestStore();
  caller = await made.createOrganization("harbour");
  runner = await registeredRunner(made, caller);
  runs = runsOn(made, caller, runner);
  await addAgent(made, caller.organizationId, { isDefault: true });
});
afterEach(() => made.close());

const reviewsOf = (by: Caller) => operationsOf(ReviewContract, new AgentReviewService(made.deps), by);

/** Another member of the organization. */
async function addMember(email: string): Promise<Caller> {
  const { organizationId } = caller;
  const { userId, accountId } = await insertTestMember(made.store, made.keys, { organizationId, email });
  const tokenId = await made.issueTokenId(userId);
  return { ...userOf({ ...caller, accountId, tokenId }, userId), role: "member" };
}

/** A run at work, in whose environment one file has these new lines. */
async function runWith(...lines: string[]) {
  const { id, given } = await runs.running();
  const environmentId = (await runs.get(id))?.status?.usedEnvironments[0]?.environmentId ?? "";
  const show = async (...shown: string[]) => {
    const patch = `@@ -0,0 +1,${shown.length} @@\n${shown.map((line) => `+${line}\n`).join("")}`;
    const file = { path: "ship/a.ts", kind: Kind.ADDED, patch };
    const service = new EnvironmentWorkService({ ...workDependencies(made), runs: runsInEnvironment });
    await operationsOf(EnvironmentWorkContract, service, runner.caller).reportEnvironmentChanges({
      environmentId,
      repositories: [{ folder: "ship" }],
      diffs: [{ base: DiffBase.ENVIRONMENT, files: [file] }],
    });
    const { digest } = await reviewsOf(caller).listAgentReviews({ agentExecutionId: id });
    return digest;
  };
  return { id, given, show, digest: await show(...lines) };
}

const comment = (digest: string, more: Comment = {}): Comment => ({
  path: "ship/a.ts",
  firstLine: 2,
  lastLine: 2,
  text: "No.",
  digest,
  ...more,
});
const send = (agentExecutionId: string, value: Review, { by = caller, id = "" } = {}) =>
  agentsOf(made, by).sendToAgentExecution({
    agentExecutionId,
    input: { case: "userInput", value: { id, inputs: [{ input: { case: "review", value } }] } },
  });
const sent = async (agentExecutionId: string, by = caller) => {
  const { reviews } = await reviewsOf(by).listAgentReviews({ agentExecutionId });
  return reviews.flatMap(({ input }) =>
    input.case === "userInput"
      ? input.value.inputs.flatMap((part) => (part.input.case === "review" ? [part.input.value] : []))
      : [],
  );
};
/** The next input that the runner gets. */
async function delivered(given: Work) {
  const stream = inputsOf(made, runner, given);
  const next = await stream.next();
  await stream.leave();
  return next?.input?.input.case === "userInput" ? next.input.input.value.inputs : [];
}
const draftsOf = async (by: Caller, agentExecutionId: string) =>
  (await reviewsOf(by).listAgentReviewDrafts({ agentExecutionId })).drafts;
const draft = async (by: Caller, agentExecutionId: string, more: object = { summary: "Hm" }) =>
  (await reviewsOf(by).createAgentReviewDraft({ agentExecutionId, ...more })).draft;
const reason = (name: keyof typeof ErrorReason) => ({ reason: ErrorReason[name] });

describe("a review", () => {
  test("is kept with its lines, and delivered in words with their places at that time", async () => {
    const run = await runWith("first line", "second line", "third line");
    await send(run.id, { summary: "Nearly.", comments: [comment(run.digest)] }, { id: "one" });
    await run.show("zero line", "first line", "second line", "third line");
    const parts = await delivered(run.given);
    expect(parts.map(({ input }) => input.case)).toEqual(["text", "review"]);
    expect(parts[0]?.input.value).toMatchObject({
      content: "Review of your changes, 1 comment:\n\nNearly.\n\n1. a.ts, line 3:\n> second line\nNo.",
    });
    const present = { state: State.MOVED, path: "ship/a.ts", firstLine: 3, lastLine: 3 };
    const quote = { lines: ["second line"], before: ["first line"], after: ["third line"] };
    expect(parts[1]?.input.value).toMatchObject({ comments: [{ present, quote }] });
    expect(await sent(run.id)).toMatchObject([{ summary: "Nearly.", comments: [{ present }] }]);
    await run.show("first line");
    expect(await sent(run.id)).toMatchObject([{ comments: [{ present: { state: State.OUTDATED } }] }]);
    const { inputs } = await runs.agents.listAgentInputs({ agentExecutionId: run.id, includePast: true });
    const [stored] = inputs[0]?.input.case === "userInput" ? inputs[0].input.value.inputs : [];
    expect(stored?.input.case === "review" && stored.input.value.comments[0]).toMatchObject({ quote });
    expect(stored?.input.case === "review" && stored.input.value.comments[0]?.present).toBeUndefined();
  });

  test("takes the lines of an earlier diff from its sender, and is outdated without them", async () => {
    const run = await runWith("first line", "second line");
    await run.show("zero line", "first line", "second line");
    const quote = { lines: ["second\u202e line"], before: ["first line"] };
    const comments = [
      comment(run.digest, { quote }),
      comment(run.digest),
      comment(run.digest, { quote: { lines: ["other line"] } }),
    ];
    await send(run.id, { comments });
    const states = (await sent(run.id))[0]?.comments.map(({ present }) => present?.state);
    expect(states).toEqual([State.MOVED, State.OUTDATED, State.OUTDATED]);
    const wrong = comment(run.digest, { quote: { lines: ["one", "two"] } });
    await expect(send(run.id, { comments: [wrong] })).rejects.toMatchObject(reason("VALUE_UNUSABLE"));
  });

  test("takes the lines from the diff while that is stored, whatever its sender says", async () => {
    const run = await runWith("first line", "second line");
    await send(run.id, { comments: [comment(run.digest, { quote: { lines: ["forged"] } })] });
    expect(await sent(run.id)).toMatchObject([{ comments: [{ quote: { lines: ["second line"] } }] }]);
  });

  test.each<[string, Comment]>([
    ["a line behind the last", { firstLine: 3, lastLine: 3 }],
    ["lines of which one is behind the last", { lastLine: 3 }],
    ["a file that has not changed", { path: "ship/b.ts" }],
    ["the old side of a new file", { side: Side.OLD }],
  ])("is refused for a comment on %s", async (_, more) => {
    const run = await runWith("first line", "second line");
    const refused = send(run.id, { comments: [comment(run.digest), comment(run.digest, more)] });
    await expect(refused).rejects.toMatchObject({
      ...reason("VALUE_UNUSABLE"),
      metadata: { field: "userInput.inputs[0].review.comments[1]" },
    });
    expect(await sent(run.id)).toEqual([]);
  });

  test("is refused for words that hide or reorder others, and as the second of a message", async () => {
    const run = await runWith("first line", "second line");
    const hidden = [{ summary: "a\u202eb" }, { comments: [comment(run.digest, { text: "a\u{e0041}b" })] }];
    for (const review of hidden)
      await expect(send(run.id, review)).rejects.toMatchObject(reason("TEXT_DECEPTIVE"));
    const part = { input: { case: "review" as const, value: { summary: "Good." } } };
    const twice = runs.agents.sendToAgentExecution({
      agentExecutionId: run.id,
      input: { case: "userInput", value: { inputs: [part, part] } },
    });
    await expect(twice).rejects.toMatchObject(reason("VALUE_UNUSABLE"));
  });

  test("may come with texts, and before anything was reported of the environment", async () => {
    const { id, given } = await runs.running();
    const value = { summary: "Good.", comments: [comment("0".repeat(64))] };
    const inputs = [
      { input: { case: "text" as const, value: { content: "Look:" } } },
      { input: { case: "review" as const, value } },
    ];
    await runs.agents.sendToAgentExecution({
      agentExecutionId: id,
      input: { case: "userInput", value: { inputs } },
    });
    const parts = await delivered(given);
    expect(parts.map(({ input }) => input.case)).toEqual(["text", "text", "review"]);
    expect(parts[1]?.input.value).toMatchObject({ content: expect.stringContaining("line 2 (outdated") });
  });

  test("is read by those who may read the run, and sent by those who may send to it", async () => {
    const run = await runWith("first line", "second line");
    await send(run.id, { comments: [comment(run.digest)] });
    const member = await addMember("second@example.org");
    const stranger = await made.createOrganization("island");
    for (const by of [member, stranger])
      await expect(sent(run.id, by)).rejects.toMatchObject(reason("NOT_FOUND"));
    await operationsOf(
      OrganizationContract,
      new OrganizationService(made.deps),
      caller,
    ).updateOrganizationPolicies({
      organizationId: caller.organizationId,
      agentPolicy: { conversationSharingPolicy: Sharing.ORGANIZATION },
    });
    expect(await sent(run.id, member)).toHaveLength(1);
    const refused = [
      send(run.id, { summary: "No." }, { by: member }),
      draft(member, run.id),
      draftsOf(member, run.id),
    ];
    for (const each of refused) await expect(each).rejects.toMatchObject(reason("PERMISSION_DENIED"));
    await expect(draft(stranger, run.id)).rejects.toMatchObject(reason("NOT_FOUND"));
  });
});

describe("a draft", () => {
  test("is its author's alone, and of one run", async () => {
    const [run, other] = [await runWith("first line", "second line"), await runWith("x")];
    const own = await draft(caller, run.id, { summary: "Hm", comments: [comment(run.digest)] });
    expect(own).toMatchObject({
      agentExecutionId: run.id,
      revision: 1n,
      summary: "Hm",
      comments: [{ quote: { lines: ["second line"] } }],
    });
    expect(await draftsOf(caller, other.id)).toEqual([]);
    expect(await draftsOf(caller, run.id)).toMatchObject([{ id: own?.id }]);
    await expect(send(other.id, { draftId: own?.id ?? "" })).rejects.toMatchObject(reason("NOT_FOUND"));

    // An administrator may send to the run, and does not see what its creator keeps.
    const member = await addMember("second@example.org");
    const agentExecutionId = await runsOn(made, member, runner).start();
    const draftId = (await draft(member, agentExecutionId))?.id ?? "";
    expect(await draftsOf(caller, agentExecutionId)).toEqual([]);
    for (const by of [caller, await made.createOrganization("island")]) {
      const refused = [
        reviewsOf(by).updateAgentReviewDraft({ draftId, revision: 1n, summary: "Mine" }),
        reviewsOf(by).deleteAgentReviewDraft({ draftId }),
        send(agentExecutionId, { draftId }, { by }),
      ];
      for (const each of refused) await expect(each).rejects.toMatchObject(reason("NOT_FOUND"));
    }
    expect(await draftsOf(member, agentExecutionId)).toMatchObject([{ revision: 1n, summary: "Hm" }]);
    await reviewsOf(member).deleteAgentReviewDraft({ draftId });
    expect(await draftsOf(member, agentExecutionId)).toEqual([]);
  });

  test("is changed by a person who has seen its revision, and keeps the lines of its comments", async () => {
    const run = await runWith("first line", "second line");
    const own = await draft(caller, run.id, { comments: [comment(run.digest)] });
    const id = own?.id ?? "";
    await run.show("zero line", "first line", "second line");
    const operations = reviewsOf(caller);
    const comments = [comment(run.digest, { text: "Other words." }), comment(run.digest, { firstLine: 1 })];
    const { draft: changed } = await operations.updateAgentReviewDraft({
      draftId: id,
      revision: 1n,
      comments,
    });
    expect(changed).toMatchObject({
      revision: 2n,
      comments: [{ text: "Other words.", quote: { lines: ["second line"] } }, { firstLine: 1 }],
    });
    expect(changed?.comments[1]?.quote).toBeUndefined();
    await expect(
      operations.updateAgentReviewDraft({ draftId: id, revision: 1n, summary: "Late" }),
    ).rejects.toMatchObject({ ...reason("DRAFT_CHANGED"), metadata: { revision: "2" } });
    const [listed] = await draftsOf(caller, run.id);
    expect(listed?.comments.map(({ present }) => present?.state)).toEqual([State.MOVED, State.OUTDATED]);
  });

  test("is sent at the revision that was seen, and is gone then", async () => {
    const run = await runWith("first line", "second line");
    const own = await draft(caller, run.id, { summary: "Hm", comments: [comment(run.digest)] });
    const draftId = own?.id ?? "";
    await expect(send(run.id, { draftId, draftRevision: 2n })).rejects.toMatchObject(reason("DRAFT_CHANGED"));
    await send(run.id, { draftId, draftRevision: 1n }, { id: "sent" });
    expect(await draftsOf(caller, run.id)).toEqual([]);
    expect(await sent(run.id)).toMatchObject([
      { summary: "Hm", draftId: "", draftRevision: 0n, comments: [{ quote: { lines: ["second line"] } }] },
    ]);
    // A repetition is accepted, and a draft cannot be sent twice.
    await send(run.id, { draftId, draftRevision: 1n }, { id: "sent" });
    await expect(send(run.id, { draftId })).rejects.toMatchObject(reason("NOT_FOUND"));
    expect(await sent(run.id)).toHaveLength(1);
    const empty = await draft(caller, run.id, {});
    await expect(send(run.id, { draftId: empty?.id ?? "" })).rejects.toMatchObject(reason("VALUE_UNUSABLE"));
  });

  test("of a run that has stopped is sent with the run that resumes it", async () => {
    const run = await runWith("first line", "second line");
    await runs.work.reportAgent({ ...runs.named(run.given), state: AgentState.WAITING });
    await runs.agents.stopAgentExecution({ agentExecutionId: run.id });
    await runs.finish(run.given);
    const own = await draft(caller, run.id, { comments: [comment(run.digest)] });
    const part = { input: { case: "review" as const, value: { draftId: own?.id ?? "" } } };
    const { agentExecutionId } = await runs.agents.startAgent({
      resumeFrom: run.id,
      userInput: { inputs: [part] },
    });
    expect(await sent(agentExecutionId)).toMatchObject([
      { comments: [{ present: { state: State.CURRENT } }] },
    ]);
    expect(await draftsOf(caller, run.id)).toEqual([]);
  });

  test("is one of at most ten of a person for a run", async () => {
    const [run, other] = [await runWith("x"), await runWith("x")];
    for (let count = 1; count <= 9; count++) await draft(caller, run.id);
    const last = await draft(caller, run.id);
    await expect(draft(caller, run.id)).rejects.toMatchObject({
      ...reason("LIMIT_REACHED"),
      metadata: { limit: "10" },
    });
    await draft(caller, other.id);
    await reviewsOf(caller).deleteAgentReviewDraft({ draftId: last?.id ?? "" });
    await draft(caller, run.id);
    const page = await reviewsOf(caller).listAgentReviewDrafts({
      agentExecutionId: run.id,
      pagination: { pageSize: 9 },
    });
    expect([page.drafts.length, page.pagination?.nextToken]).toEqual([9, expect.stringMatching(/./)]);
  });

  test("goes with its run, and with its author, and is counted with what the organization stores", async () => {
    const run = await runWith("x");
    await draft(caller, run.id, { summary: "é".repeat(500) });
    const rows = () => builderOf(made.store.reader).selectFrom("agent_review_draft").select("id").execute();
    const problems = () => withRawData(made.dataDir, storageProblems);
    expect([(await rows()).length, await problems()]).toEqual([1, []]);
    await runs.agents.stopAgentExecution({ agentExecutionId: run.id });
    await runs.finish(run.given);
    await runs.agents.deleteAgentExecution({ agentExecutionId: run.id });
    expect([await rows(), await problems()]).toEqual([[], []]);

    const member = await addMember("second@example.org");
    const agentExecutionId = await runsOn(made, member, runner).start();
    await draft(member, agentExecutionId);
    await operationsOf(OrganizationContract, new OrganizationService(made.deps), caller).removeMember({
      organizationId: caller.organizationId,
      userId: member.subject.id,
    });
    expect([await rows(), await problems()]).toEqual([[], []]);
  });
});
