import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import {
  EnvironmentPushSchema,
  EnvironmentPush_Outcome as Outcome,
  EnvironmentPush_State as State,
} from "#gen/service/v1/environment_push_pb.js";
import { PullRequestChecks as Checks, FollowedPullRequestSchema } from "#gen/service/v1/pull_request_pb.js";
import { pushText } from "./push.ts";

test.each([
  [Checks.UNSPECIFIED, ""],
  [Checks.NONE, ""],
  [Checks.PENDING, "its checks go on\n"],
  [Checks.FAILED, "its checks have failed\n"],
  [Checks.PASSED, "its checks have passed\n"],
])("a pull request whose checks are %s is shown with what they have said", (checks, said) => {
  const push = create(EnvironmentPushSchema, {
    state: State.DONE,
    outcome: Outcome.UNCHANGED,
    branch: "b",
    remote: "https://git.example.org/a.git",
    commit: "c0ffee",
  });
  const url = "https://git.example.org/a/pull/1";
  const pullRequest = create(FollowedPullRequestSchema, { checks, pullRequest: { url } });
  expect(pushText({ push, pullRequest })).toBe(
    `unchanged: b of https://git.example.org/a.git at c0ffee\n${url}\n${said}`,
  );
});
