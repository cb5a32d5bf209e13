import { describe, expect, test } from "@jest/globals";
import {
  PullRequest_Origin as Origin,
  type PullRequest,
  PullRequest_State as State,
} from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import { openedGiteaPullRequest, type Payload } from "../../../../test/harness/webhook-payload.ts";
import { parsePullRequestDelivery } from "./pull-request-event.ts";

function parse(payload: Payload, name = "pull_request", host: "gitea" | "forgejo" = "gitea") {
  // Both also send the headers of GitHub.
  const headers = { [`x-${host}-event`]: name, "x-github-event": name };
  return parsePullRequestDelivery(headers, Buffer.from(JSON.stringify(payload)));
}

function events(payload: Payload, name?: string): readonly Event[] | string {
  const parsed = parse(payload, name);
  return parsed.delivery ? parsed.delivery.events : parsed.reason;
}

const read = (payload: Payload) => parse(payload).delivery?.pullRequest as PullRequest;

describe.each(["gitea", "forgejo"] as const)("a pull request of %s", (host) => {
  test("is read whole, in the repository that the changes are meant for", () => {
    expect(parse(openedGiteaPullRequest(), "pull_request", host)).toMatchObject({
      delivery: {
        events: [Event.OPENED],
        pullRequest: {
          id: "41",
          title: "Let the foghorn rest at night",
          fromBranch: "quiet-nights",
          toBranch: "main",
          url: "https://git.example.org/Lantern-Works/Harbour/pulls/41",
          author: "nell-quill",
          state: State.OPEN,
          draft: false,
          headSha: "5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",
          origin: Origin.FORK,
          repository: { owner: "Lantern-Works", name: "Harbour", host: "git.example.org" },
        },
        repositoryUrls: [
          "https://git.example.org/Lantern-Works/Harbour.git",
          "https://git.example.org/Lantern-Works/Harbour",
          "git@git.example.org:Lantern-Works/Harbour.git",
        ],
      },
    });
  });
});

describe("the origin of a pull request of Gitea", () => {
  test("is the repository itself when both have one number", () => {
    expect(read(openedGiteaPullRequest({ "pull_request.head.repo.id": 12 })).origin).toBe(
      Origin.SAME_REPOSITORY,
    );
  });

  test("is unknown when the fork was deleted", () => {
    expect(read(openedGiteaPullRequest({ "pull_request.head.repo": null })).origin).toBe(Origin.UNSPECIFIED);
  });
});

describe("an action of Gitea", () => {
  test.each([
    ["opened", Event.OPENED],
    ["reopened", Event.OPENED],
    ["synchronized", Event.UPDATED],
    ["review_requested", Event.REVIEW_REQUESTED],
    ["closed", Event.CLOSED],
  ])("%s is an event", (action, event) => {
    expect(events(openedGiteaPullRequest({ action }))).toEqual([event]);
  });

  test("closed is a merge where the pull request is merged", () => {
    const merged = { action: "closed", "pull_request.state": "closed", "pull_request.merged": true };
    expect(events(openedGiteaPullRequest(merged))).toEqual([Event.MERGED]);
    expect(read(openedGiteaPullRequest(merged)).state).toBe(State.MERGED);
  });

  test.each(["pull_request_approved", "pull_request_review_approved"])("of %s is an approval", (name) => {
    expect(events(openedGiteaPullRequest({ action: "reviewed" }), name)).toEqual([Event.APPROVED]);
  });

  test.each([
    ["WIP: x", "x", true],
    ["[wip] x", "x", true],
    ["x", "y", false],
    ["WIP: x", "WIP: y", false],
    ["x", "WIP: x", false],
  ])("edited from the title %j to %j is the end of a draft: %j", (from, title, isReady) => {
    const edited = openedGiteaPullRequest({
      action: "edited",
      changes: { title: { from } },
      "pull_request.title": title,
    });
    expect(events(edited)).toEqual(isReady ? [Event.READY_FOR_REVIEW] : 'the action "edited" starts nothing');
  });

  test.each(["label_updated", "assigned", "milestoned", "review_request_removed", "synchronize"])(
    "%s is none",
    (action) => {
      expect(events(openedGiteaPullRequest({ action }))).toBe(`the action "${action}" starts nothing`);
    },
  );
});

test("a draft of Gitea is recognized by its title, where its field is absent", () => {
  const changes = { "pull_request.draft": undefined, "pull_request.title": "WIP: all of it" };
  expect(read(openedGiteaPullRequest(changes)).draft).toBe(true);
});
