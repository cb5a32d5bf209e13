import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, describe, expect, test } from "@jest/globals";
import { ActionWorkSchema } from "#gen/runner/v1/work_pb.js";
import type { Assignment } from "../protocol/assignment.ts";
import { environmentOf } from "./action-work.ts";

const folder = mkdtempSync(join(tmpdir(), "chartroom-facts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const workspace = { folder, tree: join(folder, "tree"), home: join(folder, "home") };
/** The part of an assignment that these tests need. */
const assignment = {
  tools: { programs: { path: "/bin" }, serverUrl: "https://chartroom.example.org/rooms" },
  work: { environmentToken: "cr_env_x", secrets: [] },
} as unknown as Assignment;
const facts = (action: MessageInitShape<typeof ActionWorkSchema>) =>
  environmentOf(assignment, create(ActionWorkSchema, action), workspace);

test("a command sees what it works for, and parameters change none of it", async () => {
  const environment = await facts({
    actionId: "action",
    workflowExecutionId: "execution",
    workflowId: "workflow",
    environment: { id: "environment" },
    variables: { CHARTROOM_PARAMETER_word: "colour", CHARTROOM_ACTION_ID: "another" },
  });
  expect(environment).toEqual({
    PATH: "/bin",
    HOME: workspace.home,
    // Git does not search for a repository above the workspace.
    GIT_CEILING_DIRECTORIES: dirname(workspace.home),
    LANG: "C.UTF-8",
    CHARTROOM_PARAMETER_word: "colour",
    GIT_AUTHOR_NAME: "Chartroom",
    GIT_AUTHOR_EMAIL: "noreply@chartroom.example.org",
    GIT_COMMITTER_NAME: "Chartroom",
    GIT_COMMITTER_EMAIL: "noreply@chartroom.example.org",
    CHARTROOM_URL: "https://chartroom.example.org/rooms",
    CHARTROOM_ENVIRONMENT_ID: "environment",
    CHARTROOM_ENVIRONMENT_TOKEN: "cr_env_x",
    CHARTROOM_WORKFLOW_ID: "workflow",
    CHARTROOM_EXECUTION_ID: "execution",
    CHARTROOM_ACTION_ID: "action",
  });
});

test("commits are made in the name that the environment's content says", async () => {
  const content = { gitUsername: "Ada", gitEmail: "ada@example.org" };
  const { GIT_AUTHOR_NAME, GIT_COMMITTER_EMAIL } = await facts({ environment: { spec: { content } } });
  expect([GIT_AUTHOR_NAME, GIT_COMMITTER_EMAIL]).toEqual(["Ada", "ada@example.org"]);
});

describe("what may be long is in a file", () => {
  const read = (file: string | undefined) => JSON.parse(readFileSync(file ?? "", "utf8"));

  test("the outputs of the other actions, for the report", async () => {
    const outputs = [
      { actionId: "one", values: { lines: { value: { case: "intValue" as const, value: 7n } } } },
      { actionId: "two" },
    ];
    const { CHARTROOM_OUTPUTS } = await facts({ report: true, outputs });
    expect(read(CHARTROOM_OUTPUTS)).toMatchObject({
      outputs: [
        { actionId: "one", values: { lines: { intValue: "7" } } },
        { actionId: "two", values: {} },
      ],
    });
  });

  test("the pull request that started the execution", async () => {
    const { CHARTROOM_PULL_REQUEST } = await facts({ pullRequest: { id: "12", fromBranch: "fix" } });
    expect(read(CHARTROOM_PULL_REQUEST)).toMatchObject({ id: "12", fromBranch: "fix", draft: false });
  });
});
