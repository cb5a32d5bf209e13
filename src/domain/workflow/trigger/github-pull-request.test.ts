import { toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { PullRequestSchema, PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import {
  approvingReview,
  openedPullRequest,
  type Payload,
} from "../../../../test/harness/webhook-payload.ts";
import { gitHubEvents, gitHubPullRequest } from "./github-pull-request.ts";
import { PayloadField } from "./payload-field.ts";

const events = (payload: Payload) => gitHubEvents("pull_request", new PayloadField(payload));
const reviewEvents = (payload: Payload) => gitHubEvents("pull_request_review", new PayloadField(payload));
const read = (payload: Payload) => gitHubPullRequest(new PayloadField(payload));

describe("a pull request of GitHub", () => {
  test("is read whole, in the repository that the changes are meant for", () => {
    const { pullRequest, repositoryUrls } = read(openedPullRequest());
    expect(toJson(PullRequestSchema, pullRequest)).toEqual({
      id: "41",
      title: "Let the foghorn rest at night",
      fromBranch: "quiet-nights",
      toBranch: "main",
      url: "https://git.example.org/Lantern-Works/Harbour/pull/41",
      author: "nell-quill",
      repository: {
        cloneUrl: "https://git.example.org/Lantern-Works/Harbour.git",
        host: "git.example.org",
        owner: "Lantern-Works",
        name: "Harbour",
      },
      state: "STATE_OPEN",
      headSha: "5b1f6f3a9c0d4e8271a6b3c95d20e4f78a9b6c1d",
      origin: "ORIGIN_FORK",
    });
    expect(repositoryUrls).toEqual([
      "https://git.example.org/Lantern-Works/Harbour.git",
      "https://git.example.org/Lantern-Works/Harbour",
      "git@git.example.org:Lantern-Works/Harbour.git",
      "git://git.example.org/Lantern-Works/Harbour.git",
    ]);
  });

  test("is the same in the event of a review", () => {
    expect(read(approvingReview())).toEqual(read(openedPullRequest()));
  });

  test("may lack what the host may leave out", () => {
    const payload = openedPullRequest({
      "pull_request.user": null,
      "pull_request.head.repo": null,
      "pull_request.draft": undefined,
      "pull_request.merged": undefined,
      "repository.git_url": null,
      "repository.ssh_url": undefined,
    });
    expect(read(payload)).toMatchObject({
      pullRequest: { author: "", draft: false, state: State.OPEN },
      repositoryUrls: [
        "https://git.example.org/Lantern-Works/Harbour.git",
        "https://git.example.org/Lantern-Works/Harbour",
      ],
    });
  });

  test("keeps of a long title what the contract has room for", () => {
    const title = (text: string) => read(openedPullRequest({ "pull_request.title": text })).pullRequest.title;
    for (const length of [499, 500]) expect(title("🚢".repeat(length))).toBe("🚢".repeat(length));
    expect(title("🚢".repeat(501))).toBe("🚢".repeat(500));
    expect(title("a\tb\u001b[31m\ud83d")).toBe("a b [31m\ufffd");
  });

  test("knows its host's port only in the URL", () => {
    const payload = openedPullRequest({ "repository.clone_url": "http://Localhost:3000/o/r.git" });
    expect(read(payload).pullRequest.repository).toMatchObject({
      host: "localhost",
      cloneUrl: "http://Localhost:3000/o/r.git",
    });
  });
});

describe("what happened at GitHub", () => {
  test.each([
    ["opened", Event.OPENED],
    ["reopened", Event.OPENED],
    ["synchronize", Event.UPDATED],
    ["ready_for_review", Event.READY_FOR_REVIEW],
    ["review_requested", Event.REVIEW_REQUESTED],
  ])("is recognized by %s", (action, event) => {
    expect(events(openedPullRequest({ action }))).toEqual([event]);
  });

  test("has one event when it was closed and another when it was merged", () => {
    const closed = openedPullRequest({ action: "closed", "pull_request.state": "closed" });
    expect(events(closed)).toEqual([Event.CLOSED]);
    expect(read(closed).pullRequest.state).toBe(State.CLOSED);
    const merged = { ...closed, pull_request: { ...(closed.pull_request as object), merged: true } };
    expect(events(merged)).toEqual([Event.MERGED]);
    expect(read(merged).pullRequest.state).toBe(State.MERGED);
  });

  test("is recognized by a review that approves, of a merged pull request too", () => {
    expect(reviewEvents(approvingReview())).toEqual([Event.APPROVED]);
    expect(reviewEvents(approvingReview({ "review.state": "APPROVED" }))).toEqual([Event.APPROVED]);
    const merged = approvingReview({
      "pull_request.state": "closed",
      "pull_request.merged_at": "2026-03-02T09:39:00Z",
    });
    expect(read(merged).pullRequest.state).toBe(State.MERGED);
  });

  test.each([
    "labeled",
    "edited",
    "converted_to_draft",
    "review_request_removed",
    "submitted",
    "constructor",
    "Opened",
  ])("starts nothing when it is %s", (action) => {
    expect(() => events(openedPullRequest({ action }))).toThrow(`the action "${action}" starts nothing`);
  });

  test.each([
    ["submitted", "commented", "commented"],
    ["submitted", "changes_requested", "changes_requested"],
    ["edited", "approved", "edited"],
    ["dismissed", "dismissed", "dismissed"],
  ])("starts nothing when a review was %s as %s", (action, state, named) => {
    expect(() => reviewEvents(approvingReview({ action, "review.state": state }))).toThrow(
      `the action "review ${named}" starts nothing`,
    );
  });
});
