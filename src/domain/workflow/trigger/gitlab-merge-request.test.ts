import { toJson } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { PullRequestSchema, PullRequest_State as State } from "#gen/service/v1/agent_pb.js";
import { WorkflowTrigger_PullRequestEvent as Event } from "#gen/service/v1/workflow_pb.js";
import {
  type Changes,
  openedMergeRequest,
  type Payload,
  updatedMergeRequest,
} from "../../../../test/harness/webhook-payload.ts";
import { gitLabEvents, gitLabMergeRequest } from "./gitlab-merge-request.ts";
import { PayloadField } from "./payload-field.ts";

const events = (payload: Payload) => gitLabEvents(new PayloadField(payload));
const read = (payload: Payload) => gitLabMergeRequest(new PayloadField(payload));

describe("a merge request of GitLab", () => {
  test("is read whole, with its nested group and the login name of its author", () => {
    const { pullRequest, repositoryUrls } = read(openedMergeRequest());
    expect(toJson(PullRequestSchema, pullRequest)).toEqual({
      id: "17",
      title: "Draft: Count the buoys twice",
      fromBranch: "count-buoys",
      toBranch: "main",
      url: "https://lab.example.org/lantern/tools/harbour/-/merge_requests/17",
      author: "nell-quill",
      repository: {
        cloneUrl: "https://lab.example.org/lantern/tools/harbour.git",
        host: "lab.example.org",
        owner: "lantern/tools",
        name: "harbour",
      },
      draft: true,
      state: "STATE_OPEN",
      headSha: "c49d2e7f105b8a6634e1f90273d5c8ab416e07f2",
      origin: "ORIGIN_SAME_REPOSITORY",
    });
    expect(repositoryUrls).toEqual([
      "https://lab.example.org/lantern/tools/harbour.git",
      "https://lab.example.org/lantern/tools/harbour",
      "ssh://git@lab.example.org:2222/lantern/tools/harbour.git",
    ]);
  });

  test("says by an older word that it is a draft", () => {
    const old = openedMergeRequest({ "object_attributes.draft": undefined });
    expect(read(old).pullRequest.draft).toBe(true);
    expect(read(updatedMergeRequest()).pullRequest.draft).toBe(false);
  });

  test("tells its author's name only where the payload has it", () => {
    const author = (changes: Changes) => read(updatedMergeRequest(changes)).pullRequest.author;
    const nell = { id: 107, username: "nell-quill" };
    expect(author({})).toBe("");
    expect(author({ assignees: [nell] })).toBe("nell-quill");
    expect(author({ reviewers: [nell] })).toBe("nell-quill");
    expect(author({ "object_attributes.author_id": undefined, assignees: [nell] })).toBe("");
    // Older versions send no id.
    expect(author({ "object_attributes.author_id": undefined, user: { username: "ada-moor" } })).toBe("");
    expect(author({ user: { name: "Ada Moor", username: "ada-moor" } })).toBe("");
  });

  test.each([
    ["object_attributes.last_commit.id", { "object_attributes.last_commit": null }],
    ["object_attributes.last_commit", { "object_attributes.last_commit": "c49d2e7" }],
    ["object_attributes.iid", { "object_attributes.iid": "17" }],
    ["object_attributes.author_id", { "object_attributes.author_id": "107" }],
    ["object_attributes.state", { "object_attributes.state": "open" }],
    ["project", { project: "harbour" }],
    ["project.git_http_url", { "project.git_http_url": "git@lab.example.org:lantern/harbour.git" }],
    ["reviewers", { reviewers: {} }],
    ["assignees[1].id", { "user.id": 1, assignees: [{ id: 2 }, { id: -1 }] }],
    ["user.username", { "user.username": "" }],
  ])("is refused for what is wrong at %s", (place, changes) => {
    expect(() => read(openedMergeRequest(changes))).toThrow(`${place} must be `);
  });
});

describe("what happened at GitLab", () => {
  test.each([
    ["open", "opened", Event.OPENED, State.OPEN],
    ["reopen", "opened", Event.OPENED, State.OPEN],
    ["close", "closed", Event.CLOSED, State.CLOSED],
    ["merge", "merged", Event.MERGED, State.MERGED],
    ["approved", "opened", Event.APPROVED, State.OPEN],
    ["approval", "locked", Event.APPROVED, State.OPEN],
  ])("is recognized by %s, in state %s", (action, state, event, expected) => {
    const payload = openedMergeRequest({
      "object_attributes.action": action,
      "object_attributes.state": state,
    });
    expect(events(payload)).toEqual([event]);
    expect(read(payload).pullRequest.state).toBe(expected);
  });

  test("is two things when it is opened with reviewers", () => {
    const payload = openedMergeRequest({ reviewers: [{ id: 208, username: "ada-moor" }] });
    expect(events(payload)).toEqual([Event.OPENED, Event.REVIEW_REQUESTED]);
  });

  test("may be three things in one update", () => {
    expect(events(updatedMergeRequest())).toEqual([
      Event.UPDATED,
      Event.READY_FOR_REVIEW,
      Event.REVIEW_REQUESTED,
    ]);
  });

  const NO_COMMITS = { "object_attributes.oldrev": undefined };
  const reviewers = (previous: unknown, current: unknown) => ({
    ...NO_COMMITS,
    changes: { reviewers: { previous, current } },
  });

  test.each([
    ["commits", Event.UPDATED, { changes: undefined }],
    ["the end of the draft", Event.READY_FOR_REVIEW, { ...NO_COMMITS, "changes.reviewers": undefined }],
    ["a reviewer more", Event.REVIEW_REQUESTED, reviewers([{ id: 107 }], [{ id: 107 }, { id: 208 }])],
    [
      "a reviewer who is asked again",
      Event.REVIEW_REQUESTED,
      reviewers([{ id: 208, re_requested: false }], [{ id: 208, re_requested: true }]),
    ],
  ])("is recognized by %s", (_, event, changes) => {
    expect(events(updatedMergeRequest(changes))).toEqual([event]);
  });

  test.each([
    ["a new title", { ...NO_COMMITS, changes: { title: { previous: "a", current: "b" } } }],
    ["the start of a draft", { ...NO_COMMITS, changes: { draft: { previous: false, current: true } } }],
    ["a draft that stays one", { ...NO_COMMITS, changes: { draft: { previous: true, current: true } } }],
    ["a reviewer less", reviewers([{ id: 107 }, { id: 208 }], [{ id: 107 }])],
    [
      "the commit that was there",
      { "object_attributes.oldrev": "c49d2e7f105b8a6634e1f90273d5c8ab416e07f2", changes: {} },
    ],
  ])("starts nothing when an update brings %s", (_, changes) => {
    expect(() => events(updatedMergeRequest(changes))).toThrow(
      "the update brings no commits, no reviewer and no end of the draft",
    );
  });

  test.each(["unapproved", "unapproval", "opened", "constructor"])(
    "starts nothing when it is %s",
    (action) => {
      expect(() => events(openedMergeRequest({ "object_attributes.action": action }))).toThrow(
        `the action "${action}" starts nothing`,
      );
    },
  );

  test.each([
    ["object_attributes.oldrev", { "object_attributes.oldrev": "main" }],
    ["changes", { changes: [] }],
    ["changes.draft.previous", { "changes.draft.previous": "true" }],
    ["changes.reviewers.current", { "changes.reviewers.current": "ada" }],
    ["changes.reviewers.current[0].id", { "changes.reviewers.current": [{}] }],
  ])("is refused for what is wrong at %s", (place, changes) => {
    expect(() => events(updatedMergeRequest(changes))).toThrow(`${place} must be `);
  });
});
