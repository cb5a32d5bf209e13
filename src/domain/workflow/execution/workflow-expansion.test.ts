import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "@jest/globals";
import { PullRequestSchema } from "#gen/service/v1/agent_pb.js";
import {
  WorkflowActionSchema,
  WorkflowExecutionActionSchema,
  WorkflowExecutionSchema,
  WorkflowExecutionTriggerSchema,
  WorkflowTriggerContextSchema,
} from "#gen/service/v1/workflow_pb.js";
import { actionSources, remoteOfAction, requireStepLimit, searchOf } from "./workflow-expansion.ts";

const NOTHING = { projectNames: new Map<string, string>(), cloneUrls: [] };
/** Parses contexts and pull requests from JSON. */
const contextOf = (json: JsonValue) => fromJson(WorkflowTriggerContextSchema, json);
const trigger = (context: JsonValue, pullRequest?: JsonObject) =>
  fromJson(WorkflowExecutionTriggerSchema, {
    context,
    ...(pullRequest ? { pullRequest } : { manual: {} }),
  });
const urls = (...repoUrls: string[]) => ({
  repositories: { repositoryUrls: { repoUrls }, environmentClassId: "class" },
});
const search = {
  repositories: { repoSelector: { repoSearchString: "org:team", scmHost: "Git.Example.org" } },
};
const prompt = { agent: { prompt: "look around" } };

describe("the actions of a context", () => {
  test("are one for each project, in order and once, by its name", () => {
    const projectNames = new Map([["b", "Harbour"]]);
    const context = { projects: { projectIds: ["b", "a", "b"] } };
    const sources = actionSources(trigger(context), { ...NOTHING, projectNames });
    expect(sources.map(({ name, context: code }) => [name, code?.context])).toMatchObject([
      ["Harbour", { case: "projectId", value: "b" }],
      ["a", { case: "projectId", value: "a" }],
    ]);
    expect(actionSources(trigger({ projects: {} }), NOTHING)).toEqual([]);
  });

  test("are one for each repository, in order and once, by its name and with the class", () => {
    const remotes = ["https://git.example.org/team/ship.git", "git@git.example.org:team/sail.git"];
    const sources = actionSources(trigger(urls(...remotes, ...remotes)), NOTHING);
    expect(sources.map(({ name, context: code }) => [name, code?.context.value])).toMatchObject([
      ["ship", { url: "https://git.example.org/team/ship.git", environmentClassId: "class" }],
      ["sail", { url: "ssh://git@git.example.org/team/sail.git", environmentClassId: "class" }],
    ]);
  });

  test("are one for each repository that a search found", () => {
    const cloneUrls = ["https://git.example.org/team/ship.git"];
    expect(actionSources(trigger(search), { ...NOTHING, cloneUrls }).map(({ name }) => name)).toEqual([
      "ship",
    ]);
  });

  test("are one without code for an agent's prompt", () => {
    expect(actionSources(trigger(prompt), NOTHING)).toEqual([{ name: "agent", context: undefined }]);
  });

  test("are about the pull request whose event started the execution", () => {
    const pullRequest = { id: "7", headSha: "abc" };
    for (const context of [
      urls("https://git.example.org/team/ship.git"),
      { projects: { projectIds: ["a"] } },
      prompt,
    ]) {
      const [source] = actionSources(trigger(context, pullRequest), NOTHING);
      expect(source?.context?.pullRequest).toEqual(create(PullRequestSchema, pullRequest));
    }
  });

  test("are never made of a context that only a trigger has", () => {
    expect(() => actionSources(trigger({ fromTrigger: {} }), NOTHING)).toThrow();
  });
});

test("a search is that of a repository selector, at its host in lower case", () => {
  expect(searchOf(contextOf(search))).toEqual({ host: "git.example.org", query: "org:team" });
  expect(searchOf(contextOf(urls("https://git.example.org/team/ship.git")))).toBeUndefined();
  expect(searchOf(undefined)).toBeUndefined();
});

test("the prompt of an agent context counts as a step", () => {
  const context = contextOf(prompt);
  const action = (count: number) =>
    fromJson(WorkflowActionSchema, {
      steps: Array.from({ length: count }, () => ({ task: { command: "true" } })),
    });
  requireStepLimit(context, action(48));
  requireStepLimit(context, action(49));
  expect(() => requireStepLimit(context, action(50))).toThrow("at most 49 others");
  requireStepLimit(contextOf(search), action(50));
});

test("the remote of an action is the one that the workflow names", () => {
  const remotes = ["git@git.example.org:team/sail.git", "https://git.example.org/team/ship.git"];
  const execution = create(WorkflowExecutionSchema, { spec: { trigger: trigger(urls(...remotes)) } });
  const sources = actionSources(trigger(urls(...remotes)), NOTHING);
  const actions = sources.map(({ context }) =>
    create(WorkflowExecutionActionSchema, { spec: { ...(context && { context }) } }),
  );
  expect(actions.map((action) => remoteOfAction(execution, action))).toEqual(remotes);
  const found = create(WorkflowExecutionSchema, { spec: { trigger: trigger(search) } });
  expect(remoteOfAction(found, actions[1] ?? create(WorkflowExecutionActionSchema))).toBe(remotes[1]);
  expect(remoteOfAction(execution, create(WorkflowExecutionActionSchema))).toBeUndefined();
});
