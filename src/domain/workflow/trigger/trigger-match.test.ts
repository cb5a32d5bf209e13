import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  WorkflowTrigger_PullRequestEvent as Event,
  WorkflowTriggerContextSchema,
  WorkflowTriggerSchema,
} from "#gen/service/v1/workflow_pb.js";
import {
  GITHUB_PULL_REQUEST,
  GITLAB_MERGE_REQUEST,
  openedPullRequest,
  updatedMergeRequest,
} from "../../../../test/harness/webhook-payload.ts";
import { parsePullRequestDelivery } from "./pull-request-event.ts";
import { contextOfTrigger, matchingTriggers, projectIdsOf } from "./trigger-match.ts";

type Context = NonNullable<MessageInitShape<typeof WorkflowTriggerContextSchema>["context"]>;

const FROM_TRIGGER: Context = { case: "fromTrigger", value: {} };
const AGENT: Context = { case: "agent", value: { prompt: "Look at it" } };

function repositories(...repoUrls: string[]): Context {
  return {
    case: "repositories",
    value: { repositorySelector: { case: "repositoryUrls", value: { repoUrls } } },
  };
}

function search(scmHost: string): Context {
  return {
    case: "repositories",
    value: {
      repositorySelector: { case: "repoSelector", value: { scmHost, repoSearchString: "topic:tools" } },
    },
  };
}

function projects(...projectIds: string[]): Context {
  return { case: "projects", value: { projectIds } };
}

function trigger(context: Context, ...events: Event[]) {
  return create(WorkflowTriggerSchema, {
    trigger: { case: "pullRequest", value: { events } },
    context: { context },
  });
}

function delivery(headers: Record<string, string>, payload: unknown) {
  const reading = parsePullRequestDelivery(headers, Buffer.from(JSON.stringify(payload)));
  if (!reading.delivery) throw new Error(reading.reason);
  return reading.delivery;
}

/** Delivery of https://git.example.org/Lantern-Works/Harbour.git */
const OPENED = delivery(GITHUB_PULL_REQUEST, openedPullRequest());
/**
 * UPDATED, READY_FOR_REVIEW and REVIEW_REQUESTED at
 * https://lab.example.org/lantern/tools/harbour.git
 */
const UPDATED = delivery(GITLAB_MERGE_REQUEST, updatedMergeRequest());

function matches(context: Context, remotes: Record<string, readonly string[]> = {}): boolean {
  return matchingTriggers([trigger(context)], OPENED, new Map(Object.entries(remotes))).length === 1;
}

describe("the context of a trigger", () => {
  test("that the event brings, or that is an agent's, takes every repository", () => {
    expect(matches(FROM_TRIGGER)).toBe(true);
    expect(matches(AGENT)).toBe(true);
  });

  test.each([
    "https://git.example.org/Lantern-Works/Harbour.git",
    "https://git.example.org/Lantern-Works/Harbour",
    "https://GIT.example.org:443/lantern-works/harbour/",
    "git@git.example.org:Lantern-Works/Harbour.git",
    "ssh://git@git.example.org:22/Lantern-Works/Harbour",
  ])("that names the repository as %s takes it", (url) => {
    expect(matches(repositories("https://git.example.org/other/one", url))).toBe(true);
    expect(matches(projects("p1", "p2"), { p1: ["https://git.example.org/other/one"], p2: [url] })).toBe(
      true,
    );
  });

  test.each([
    "https://git.example.org/Lantern-Works/Harbour-2",
    "https://git.example.org/nell-quill/Harbour.git",
    "https://git.example.org:8443/Lantern-Works/Harbour.git",
    "https://lab.example.org/Lantern-Works/Harbour.git",
    "/srv/git/Lantern-Works/Harbour.git",
    "",
  ])("that names only %j does not", (url) => {
    expect(matches(repositories(url))).toBe(false);
    expect(matches(projects("p1"), { p1: [url] })).toBe(false);
  });

  test("with no project, or with projects that are gone or have no remote, takes nothing", () => {
    expect(matches(projects())).toBe(false);
    expect(matches(projects("p1"))).toBe(false);
    expect(matches(projects("p1"), { p1: [], p2: OPENED.repositoryUrls })).toBe(false);
  });

  test("that searches at a host takes what comes from there", () => {
    expect(matches(search("git.example.org"))).toBe(true);
    expect(matches(search("Git.Example.ORG"))).toBe(true);
    expect(matches(search("git.example.org:8443"))).toBe(true);
    expect(matches(search("lab.example.org:8443"))).toBe(false);
    expect(matches(search("lab.example.org"))).toBe(false);
    expect(matches(search("example.org"))).toBe(false);
  });

  test("that is empty takes nothing", () => {
    expect(matches({ case: "repositories", value: {} })).toBe(false);
    const without = create(WorkflowTriggerSchema, { trigger: { case: "pullRequest", value: {} } });
    const empty = create(WorkflowTriggerSchema, { trigger: { case: "pullRequest", value: {} }, context: {} });
    expect(matchingTriggers([without, empty], OPENED, new Map())).toEqual([]);
  });

  test("finds a repository that is served by ssh at another port", () => {
    const url = "ssh://git@lab.example.org:2222/lantern/tools/harbour";
    expect(matchingTriggers([trigger(repositories(url))], UPDATED, new Map())).toHaveLength(3);
  });
});

describe("the kinds of a trigger", () => {
  const kinds = (...events: Event[]) =>
    matchingTriggers([trigger(FROM_TRIGGER, ...events)], UPDATED, new Map()).map(({ event }) => event);

  test("are all kinds when it names none", () => {
    expect(kinds()).toEqual([Event.UPDATED, Event.READY_FOR_REVIEW, Event.REVIEW_REQUESTED]);
  });

  test("are those it names, in the order of the delivery and each once", () => {
    expect(kinds(Event.REVIEW_REQUESTED, Event.OPENED, Event.UPDATED, Event.UPDATED)).toEqual([
      Event.UPDATED,
      Event.REVIEW_REQUESTED,
    ]);
  });

  test("that it names may be none that happened, or no kind at all", () => {
    expect(kinds(Event.MERGED)).toEqual([]);
    expect(kinds(Event.UNSPECIFIED)).toEqual([]);
  });
});

describe("the triggers of a workflow", () => {
  const manual = create(WorkflowTriggerSchema, {
    trigger: { case: "manual", value: {} },
    context: { context: AGENT },
  });
  const time = create(WorkflowTriggerSchema, {
    trigger: { case: "time", value: { cronExpression: "0 7 * * *" } },
    context: { context: projects("p9") },
  });

  test("fire each for itself, and only those on pull requests", () => {
    const triggers = [
      manual,
      trigger(FROM_TRIGGER, Event.OPENED),
      time,
      trigger(AGENT, Event.CLOSED),
      trigger(AGENT),
    ];
    const key = (index: number) =>
      `pr:${index}:git.example.org/lantern-works/harbour:41:opened:5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d`;
    expect(matchingTriggers(triggers, OPENED, new Map())).toEqual([
      { triggerIndex: 1, event: Event.OPENED, deduplicationKey: key(1) },
      { triggerIndex: 4, event: Event.OPENED, deduplicationKey: key(4) },
    ]);
  });

  test("tell apart events, heads, pull requests and repositories, but not the ways to write one", () => {
    const keys = (changes: Record<string, unknown>) =>
      matchingTriggers(
        [trigger(FROM_TRIGGER)],
        delivery(GITHUB_PULL_REQUEST, openedPullRequest(changes)),
        new Map(),
      ).map(({ deduplicationKey }) => deduplicationKey);
    const [first] = keys({});
    const others = [
      { action: "synchronize" },
      { "pull_request.head.sha": "0".repeat(40) },
      { "pull_request.number": 42 },
      { "repository.clone_url": "https://git.example.org/Lantern-Works/Harbour-2.git" },
      { "repository.clone_url": "https://git.example.org:8443/Lantern-Works/Harbour.git" },
    ].flatMap(keys);
    expect(new Set([first, ...others]).size).toBe(6);
    for (const same of [
      { action: "reopened" },
      { "pull_request.title": "Another" },
      { "repository.clone_url": "https://git.example.org/lantern-works/harbour" },
    ]) {
      expect(keys(same)).toEqual([first]);
    }
  });

  test("name the projects whose remotes decide, each once", () => {
    const triggers = [
      manual,
      time,
      trigger(projects("p1", "p2")),
      trigger(AGENT),
      trigger(projects("p2", "p3")),
    ];
    expect(projectIdsOf(triggers)).toEqual(["p1", "p2", "p3"]);
  });
});

describe("an execution of a trigger", () => {
  test("runs in the repository of the pull request when the event brings the context", () => {
    const context = contextOfTrigger(trigger(FROM_TRIGGER), OPENED.pullRequest);
    expect(toJson(WorkflowTriggerContextSchema, context)).toEqual({
      repositories: {
        repositoryUrls: { repoUrls: ["https://git.example.org/Lantern-Works/Harbour.git"] },
      },
    });
  });

  test.each([
    [AGENT],
    [repositories("git@git.example.org:o/r.git")],
    [projects("p1")],
    [search("git.example.org")],
  ])("runs in the trigger's own context otherwise: %j", (context) => {
    const own = trigger(context);
    expect(contextOfTrigger(own, OPENED.pullRequest)).toBe(own.context);
  });

  test("is no matter of a trigger without a context, or a pull request without a repository", () => {
    const without = create(WorkflowTriggerSchema, { trigger: { case: "pullRequest", value: {} } });
    expect(() => contextOfTrigger(without, OPENED.pullRequest)).toThrow("no context");
    const { repository: _, ...pullRequest } = OPENED.pullRequest;
    expect(() => contextOfTrigger(trigger(FROM_TRIGGER), pullRequest)).toThrow("no repository to clone");
  });
});
