import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { requirePushable } from "./environment-push.ts";

const spec = { workflowActionId: "01900000-0000-7000-8000-00000000000a" };

test.each([
  ["a person made", {}, false],
  ["no fork began", { spec, metadata: { secretsWithheld: false } }, false],
  ["a fork began", { spec, metadata: { secretsWithheld: true } }, true],
  ["an earlier release made for an action", { spec }, true],
])("an environment that %s: pushes are refused only after a fork began it", (_, environment, isRefused) => {
  const push = () => requirePushable(create(EnvironmentSchema, environment));
  if (!isRefused) return push();
  expect(push).toThrow(/pull request from a fork/);
});
