import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import {
  type AgentCodeContextSchema,
  type PullRequest,
  PullRequestSchema,
} from "#gen/service/v1/agent_pb.js";
import { GitInitializer_CloneTargetMode as Mode } from "#gen/service/v1/environment_pb.js";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { WorkflowExecutionActionSchema, WorkflowExecutionSchema } from "#gen/service/v1/workflow_pb.js";
import { environmentNameOf, pullRequestOfAction, specOfAction } from "./action-environment.ts";

const REMOTE = "https://git.example.org/team/ship.git";

const execution = (repoUrls: string[] = [REMOTE], pullRequest?: PullRequest) =>
  create(WorkflowExecutionSchema, {
    spec: {
      trigger: {
        ...(pullRequest && { trigger: { case: "pullRequest", value: pullRequest } as const }),
        context: {
          context: {
            case: "repositories",
            value: { repositorySelector: { case: "repositoryUrls", value: { repoUrls } } },
          },
        },
      },
    },
  });
const action = (context?: MessageInitShape<typeof AgentCodeContextSchema>, actionName = "ship") =>
  create(WorkflowExecutionActionSchema, { metadata: { actionName }, spec: { ...(context && { context }) } });
const repository = (url = REMOTE, pullRequest?: PullRequest) =>
  action({
    context: { case: "contextUrl", value: { url } },
    ...(pullRequest && { pullRequest }),
  });
const pullRequest = (more: object = {}) =>
  create(PullRequestSchema, {
    repository: { cloneUrl: "git@git.example.org:team/Ship.git" },
    headSha: "abc",
    fromBranch: "fix",
    ...more,
  });
const specOf = (of: Partial<Parameters<typeof specOfAction>[0]>) =>
  specOfAction({
    execution: execution(),
    action: action(),
    project: undefined,
    environmentClassId: null,
    ...of,
  });
const gitOf = (spec: ReturnType<typeof specOfAction>) => spec.content?.initializer?.specs[0]?.spec.value;

describe("the environment of an action", () => {
  test("is empty without a context, as that of an agent or a report", () => {
    expect(specOf({})).toMatchObject({ $typeName: "service.v1.EnvironmentSpec" });
    expect(specOf({}).content).toBe(undefined);
    expect(specOf({}).machine).toBe(undefined);
  });

  test("over a repository is cloned from it as the workflow names it, in its class", () => {
    const spec = specOf({ action: repository(), environmentClassId: "small" });
    expect(spec.machine?.class).toBe("small");
    expect(gitOf(spec)).toMatchObject({ remoteUri: REMOTE, targetMode: Mode.UNSPECIFIED, cloneTarget: "" });
    const short = "git@git.example.org:team/ship.git";
    const scp = specOf({
      execution: execution([short]),
      action: repository("ssh://git@git.example.org/team/ship.git"),
    });
    expect(gitOf(scp)).toMatchObject({ remoteUri: short });
  });

  test.each([
    [pullRequest(), Mode.REMOTE_COMMIT, "abc"],
    [pullRequest({ headSha: "" }), Mode.REMOTE_BRANCH, "fix"],
    [pullRequest({ headSha: "", fromBranch: "" }), Mode.UNSPECIFIED, ""],
    [
      pullRequest({ repository: { cloneUrl: "https://git.example.org/team/boat.git" } }),
      Mode.UNSPECIFIED,
      "",
    ],
  ])("over the repository of a pull request is its newest commit: %#", (of, targetMode, cloneTarget) => {
    const spec = specOf({ execution: execution([REMOTE], of), action: repository(REMOTE, of) });
    expect(gitOf(spec)).toMatchObject({ remoteUri: REMOTE, targetMode, cloneTarget });
  });

  test("over a project is the project's, in the class that it was queued for", () => {
    const project = create(ProjectSchema, {
      initializer: { specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/p" } } }] },
      environmentClasses: [{ environmentClass: { case: "environmentClassId", value: "first" } }],
      devcontainerFilePath: "dev.json",
    });
    const queued = specOf({ project, environmentClassId: "second" });
    expect(queued).toMatchObject({
      machine: { class: "second" },
      devcontainer: { devcontainerFilePath: "dev.json" },
    });
    expect(gitOf(queued)).toMatchObject({ remoteUri: "https://git.example.org/p" });
    expect(specOf({ project }).machine).toBe(undefined);
  });

  test("has the action's name, cut to what a name may hold", () => {
    expect(environmentNameOf(action(undefined, "x".repeat(80)))).toBe("x".repeat(80));
    expect(environmentNameOf(action(undefined, "🙂".repeat(81)))).toBe("🙂".repeat(80));
  });
});

test("the pull request of an execution is that whose event started it", () => {
  expect(pullRequestOfAction(execution([REMOTE], pullRequest()))?.headSha).toBe("abc");
  expect(pullRequestOfAction(execution())).toBe(undefined);
});
