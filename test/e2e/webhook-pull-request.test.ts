import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import { post, repository } from "../harness/call.ts";
import { withServerData } from "../harness/member.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  ledgerOf,
  MANUAL,
  type TestWorkflow,
  verdictsOf,
} from "../harness/webhook.ts";
import {
  approvingReview,
  type Changes,
  GITEA_PULL_REQUEST,
  GITHUB_PULL_REQUEST,
  GITHUB_REVIEW,
  GITLAB_MERGE_REQUEST,
  openedGiteaPullRequest,
  openedMergeRequest,
  openedPullRequest,
  type Payload,
  updatedMergeRequest,
} from "../harness/webhook-payload.ts";
import { giteaSignature, hubSignature } from "../harness/webhook-signing.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const REPOSITORY = "https://git.example.org/Lantern-Works/Harbour";
const urls = (...repoUrls: string[]) => ({ repositories: { repositoryUrls: { repoUrls } } });

/** Gives triggers a prompt that no write would take, as an older release stored it. */
const storePrompts = (workflowId: string, prompt: string, triggerIndexes: readonly number[]) =>
  withServerData(server, (store) =>
    store.write(SYSTEM, "test", async ({ db }) => {
      const row = builderOf(db).selectFrom("workflow").select("body").where("id", "=", workflowId);
      const body = JSON.parse((await row.executeTakeFirstOrThrow()).body);
      for (const index of triggerIndexes) body.spec.triggers[index].context.agent.prompt = prompt;
      const changed = { body: JSON.stringify(body) };
      await builderOf(db).updateTable("workflow").set(changed).where("id", "=", workflowId).execute();
    }),
  );

const on = (context: object, ...events: string[]) => ({
  pullRequest: { events: events.map((event) => `PULL_REQUEST_EVENT_${event}`) },
  context,
});

/** Posts a payload as GitHub does. */
function send(
  { id, secret }: TestWorkflow,
  payload: Payload,
  headers: Readonly<Record<string, string>> = {},
) {
  const body = Buffer.from(JSON.stringify(payload));
  return deliver(server, id, body, { ...GITHUB_PULL_REQUEST, ...hubSignature(secret, body), ...headers });
}

/** Posts a payload as Gitea does, which also sends the headers of GitHub. */
function sendGitea({ id, secret }: TestWorkflow, payload: Payload) {
  const body = Buffer.from(JSON.stringify(payload));
  const signatures = { ...giteaSignature(secret, body), ...hubSignature(secret, body) };
  return deliver(server, id, body, { ...GITEA_PULL_REQUEST, ...signatures });
}

/** Posts a payload as GitLab does. */
function sendMerge({ id, secret }: TestWorkflow, payload: Payload) {
  return deliver(server, id, JSON.stringify(payload), { ...GITLAB_MERGE_REQUEST, "x-gitlab-token": secret });
}

describe("an event of a pull request", () => {
  test("runs in its repository where the trigger says so, and is recorded in execution and ledger", async () => {
    const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} }, "OPENED")] });
    expect(verdictsOf(await send(workflow, openedPullRequest()))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, workflow.id);
    const pullRequest = {
      id: "41",
      title: "Let the foghorn rest at night",
      headSha: "5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",
      repository: { host: "git.example.org", owner: "Lantern-Works", name: "Harbour" },
    };
    expect(execution.spec.trigger).toMatchObject({ pullRequest, context: urls(`${REPOSITORY}.git`) });
    expect(execution.metadata.creator).toEqual(execution.metadata.executor);
    expect(await ledgerOf(server, workflow.id)).toMatchObject([
      {
        source: "SOURCE_WEBHOOK",
        verdict: "TRIGGER_VERDICT_STARTED",
        triggerIndex: 0,
        workflowExecutionId: execution.id,
        pullRequest,
        pullRequestEvent: "PULL_REQUEST_EVENT_OPENED",
      },
    ]);
  });

  test("of GitLab does alike", async () => {
    const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
    expect(verdictsOf(await sendMerge(workflow, openedMergeRequest()))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, workflow.id);
    expect(execution.spec.trigger).toMatchObject({
      pullRequest: { id: "17" },
      context: urls("https://lab.example.org/lantern/tools/harbour.git"),
    });
  });

  test("of Gitea does alike, and its signature alone makes it no other delivery", async () => {
    const workflow = await addWorkflow(server, { triggers: [MANUAL, on({ fromTrigger: {} })] });
    const synchronized = openedGiteaPullRequest({ action: "synchronized" });
    expect(verdictsOf(await sendGitea(workflow, synchronized))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, workflow.id);
    expect(execution.spec.trigger).toMatchObject({
      pullRequest: { id: "41", origin: "ORIGIN_FORK" },
      context: urls(`${REPOSITORY}.git`),
    });
    // Without the header of the event it is a manual start, with the same signature.
    const body = Buffer.from(JSON.stringify({ parameters: {} }));
    const sent = (headers: Record<string, string>) => deliver(server, workflow.id, body, headers);
    expect(verdictsOf(await sent(hubSignature(workflow.secret, body)))).toEqual([202, "STARTED"]);
    expect(verdictsOf(await sent(giteaSignature(workflow.secret, body)))).toEqual([200, "DUPLICATE"]);
    const forged = { "x-gitea-signature": "0".repeat(64), ...GITEA_PULL_REQUEST };
    expect((await deliver(server, workflow.id, body, forged)).status).toBe(401);
  });

  test("with a token in place of the signature starts in the name of its bearer", async () => {
    const { id } = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
    const headers = { ...GITHUB_PULL_REQUEST, authorization: `Bearer ${server.token}` };
    expect((await deliver(server, id, JSON.stringify(openedPullRequest()), headers)).status).toBe(202);
  });

  test("fires each trigger that matches, each with an execution of its own", async () => {
    const workflow = await addWorkflow(server, {
      triggers: [
        on({ fromTrigger: {} }, "OPENED"),
        on({ fromTrigger: {} }, "CLOSED"),
        MANUAL,
        on({ agent: { prompt: "Review it" } }),
        on(urls("git@git.example.org:lantern-works/harbour.git"), "OPENED", "MERGED"),
        on(urls("https://git.example.org/Lantern-Works/Lighthouse")),
      ],
    });
    const answer = await send(workflow, openedPullRequest());
    expect(verdictsOf(answer)).toEqual([202, "STARTED", "STARTED", "STARTED"]);
    const { verdicts } = answer.body;
    expect(verdicts.map(({ triggerIndex }: { triggerIndex: number }) => triggerIndex)).toEqual([0, 3, 4]);
    const executions = await executionsOf(server, workflow.id);
    expect(
      verdicts.map(({ workflowExecutionId }: { workflowExecutionId: string }) => workflowExecutionId),
    ).toEqual(executions.map(({ id }) => id));
  });

  test("matches projects by their git remotes, and their actions run in all of them", async () => {
    const initializers = [
      repository(`${REPOSITORY}.git`),
      repository("https://git.example.org/other/one.git"),
    ];
    const projectIds: string[] = [];
    for (const initializer of initializers) {
      const { body } = await post(server, "ProjectService/CreateProject", { name: "Harbour", initializer });
      projectIds.push(body.project.id);
    }
    const [harbour = "", other = ""] = projectIds;
    const workflow = await addWorkflow(server, {
      triggers: [
        on({ projects: { projectIds: [other, harbour] } }),
        on({ projects: { projectIds: [other] } }),
      ],
    });
    expect(verdictsOf(await send(workflow, openedPullRequest()))).toEqual([202, "STARTED"]);
    const [execution] = await executionsOf(server, workflow.id);
    expect(execution.spec.trigger.context).toEqual({ projects: { projectIds: [other, harbour] } });
  });

  test.each([
    ["of a kind that no trigger takes", { action: "synchronize" }],
    [
      "in a repository that no trigger names",
      {
        "repository.full_name": "lantern-works/lighthouse",
        "repository.clone_url": "https://git.example.org/lantern-works/lighthouse.git",
        "repository.html_url": "https://git.example.org/lantern-works/lighthouse",
        "repository.ssh_url": undefined,
        "repository.git_url": undefined,
      },
    ],
  ] as [string, Changes][])("%s matches nothing, and the entry says which it was", async (_, changes) => {
    const workflow = await addWorkflow(server, { triggers: [MANUAL, on(urls(REPOSITORY), "OPENED")] });
    expect(verdictsOf(await send(workflow, openedPullRequest(changes)))).toEqual([200, "NO_MATCH"]);
    const [entry] = await ledgerOf(server, workflow.id);
    expect(entry).toMatchObject({
      pullRequest: { id: "41" },
      reason: expect.stringContaining("no pull-request trigger"),
    });
    expect(entry.triggerIndex).toBeUndefined();
    expect(await executionsOf(server, workflow.id)).toEqual([]);
  });

  test("that the workflow does not take is none to its manual trigger", async () => {
    const workflow = await addWorkflow(server);
    expect(verdictsOf(await send(workflow, openedPullRequest({ action: "labeled" })))).toEqual([
      200,
      "NO_MATCH",
    ]);
  });

  test("that cannot start one trigger starts the others", async () => {
    const needs = { agent: { prompt: "Review it" } };
    const workflow = await addWorkflow(server, { triggers: [on(needs), on({ fromTrigger: {} }), on(needs)] });
    // Stored by an older release, which took it.
    await storePrompts(workflow.id, "Review {{ .Parameters.what }}", [0, 2]);
    const answer = await send(workflow, openedPullRequest());
    expect(verdictsOf(answer)).toEqual([202, "REFUSED", "STARTED", "REFUSED"]);
    expect(answer.body.verdicts[0].reason).toContain("what");
    expect(await executionsOf(server, workflow.id)).toHaveLength(1);
    // What was refused holds no key: it may start once the workflow is corrected.
    await post(server, "WorkflowService/UpdateWorkflow", {
      workflowId: workflow.id,
      triggers: [on({ agent: { prompt: "Review it" } }), on({ fromTrigger: {} })],
    });
    expect(verdictsOf(await send(workflow, openedPullRequest()))).toEqual([202, "STARTED", "DUPLICATE"]);
  });
});

describe("an event that comes again", () => {
  test("at the same head starts nothing, whatever its delivery is called", async () => {
    const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
    const first = await send(workflow, openedPullRequest(), { "x-github-delivery": "one" });
    const second = await send(workflow, openedPullRequest(), { "x-github-delivery": "two" });
    expect([verdictsOf(first), verdictsOf(second)]).toEqual([
      [202, "STARTED"],
      [200, "DUPLICATE"],
    ]);
    const [{ workflowExecutionId }] = first.body.verdicts;
    expect(second.body.verdicts).toMatchObject([{ triggerIndex: 0, workflowExecutionId }]);
    const ledger = await ledgerOf(server, workflow.id);
    expect(ledger.map(({ deliveryId, verdict }) => [deliveryId, verdict])).toEqual([
      ["one", "TRIGGER_VERDICT_STARTED"],
      ["two", "TRIGGER_VERDICT_DUPLICATE"],
    ]);
  });

  test("at another head, of another pull request, of another kind starts again", async () => {
    const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
    const headSha = "0123456789abcdef0123456789abcdef01234567";
    const deliveries: [Payload, Record<string, string>?][] = [
      [openedPullRequest()],
      [openedPullRequest({ "pull_request.head.sha": headSha })],
      [openedPullRequest({ "pull_request.number": 42 })],
      [openedPullRequest({ action: "synchronize" })],
      [approvingReview(), GITHUB_REVIEW],
    ];
    for (const [payload, headers] of deliveries) {
      expect(verdictsOf(await send(workflow, payload, headers))).toEqual([202, "STARTED"]);
    }
    for (const [payload, headers] of deliveries) {
      expect(verdictsOf(await send(workflow, payload, headers))).toEqual([200, "DUPLICATE"]);
    }
    expect(await executionsOf(server, workflow.id)).toHaveLength(deliveries.length);
  });

  test("with several events, of which one came before, starts for the others", async () => {
    const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
    const answer = await sendMerge(workflow, updatedMergeRequest());
    const events = (await ledgerOf(server, workflow.id)).map(({ pullRequestEvent }) => pullRequestEvent);
    expect(new Set(events).size).toBe(3);
    expect(verdictsOf(answer)).toEqual([202, "STARTED", "STARTED", "STARTED"]);
    const again = updatedMergeRequest({ "object_attributes.last_commit.id": "a".repeat(40) });
    expect(verdictsOf(await sendMerge(workflow, again))).toEqual([202, "STARTED", "STARTED", "STARTED"]);
    expect(verdictsOf(await sendMerge(workflow, again))).toEqual([
      200,
      "DUPLICATE",
      "DUPLICATE",
      "DUPLICATE",
    ]);
  });

  test("to another workflow is another matter", async () => {
    for (const _ of [1, 2]) {
      const workflow = await addWorkflow(server, { triggers: [on({ fromTrigger: {} })] });
      expect(verdictsOf(await send(workflow, openedPullRequest()))).toEqual([202, "STARTED"]);
    }
  });
});
