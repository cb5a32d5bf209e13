import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

const call = (operation: string, body: unknown) => post(server, `ProjectService/${operation}`, body);
const create = async (body: object = {}): Promise<Answer["body"]> => {
  const answer = await call("CreateProject", {
    initializer: repository("https://git.example.org/team/hello.git"),
    ...body,
  });
  expect(answer.status).toBe(200);
  return answer.body.project;
};

describe("creating a project", () => {
  test("names it after its repository when no name is given", async () => {
    expect((await create()).metadata.name).toBe("hello");
  });

  test("refuses an empty name in the words of the specification", async () => {
    const answer = await call("CreateProject", {
      name: "",
      initializer: repository("https://git.example.org/a"),
    });
    expect(answer.status).toBe(400);
    expect(answer.body.code).toBe("invalid_argument");
    expect(answer.body.message).toMatch(/^name must be between 1 and 80 characters/);
    expect(reasonOf(answer)).toBe("CONSTRAINT_VIOLATED");
  });

  test("asks for a name when the initializer gives none", async () => {
    const answer = await call("CreateProject", { initializer: { specs: [] } });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain("give the project a name");
  });

  test("completes prebuilds with an hour and the creator, and leaves them out when unset", async () => {
    const project = await create({ prebuildConfiguration: { enabled: true } });
    expect(project.prebuildConfiguration.timeout).toBe("3600s");
    expect(project.prebuildConfiguration.executor).toEqual(project.metadata.creator);
    expect((await create()).prebuildConfiguration).toBeUndefined();
  });

  test("refuses an executor of nowhere and an environment class of nowhere", async () => {
    const nowhere = "0190c0de-0000-7000-8000-000000000000";
    const initializer = repository("https://git.example.org/a");
    const executor = { id: nowhere, principal: "PRINCIPAL_USER" };
    const byExecutor = await call("CreateProject", { initializer, prebuildConfiguration: { executor } });
    expect([byExecutor.status, byExecutor.body.message]).toEqual([404, "user not found"]);
    const byClass = await call("CreateProject", {
      initializer,
      prebuildConfiguration: { environmentClassIds: [nowhere] },
    });
    expect([byClass.status, byClass.body.message]).toEqual([404, "environment class not found"]);
  });

  test("echoes the technical description and leaves it out of reads", async () => {
    const project = await create({ technicalDescription: "a monolith" });
    expect(project.technicalDescription).toBe("a monolith");
    const { body } = await call("GetProject", { projectId: project.id });
    expect(body.project).toEqual({ ...project, technicalDescription: "" });
    const listed = await call("ListProjects", { filter: { projectIds: [project.id] } });
    expect(listed.body.projects).toEqual([{ ...project, technicalDescription: "" }]);
  });

  test("answers an id in upper case like the same in lower case", async () => {
    const { id } = await create();
    const { body } = await call("GetProject", { projectId: id.toUpperCase() });
    expect(body.project.id).toBe(id);
  });
});

describe("updating a project", () => {
  test("changes what is given and keeps the rest", async () => {
    const project = await create({
      devcontainerFilePath: "a/devcontainer.json",
      automationsFilePath: "a.yaml",
      technicalDescription: "kept",
      annotations: { "example.org/team": "a" },
    });
    const { body } = await call("UpdateProject", { projectId: project.id, name: "renamed" });
    expect(body.project).toEqual({
      ...project,
      metadata: { ...project.metadata, name: "renamed", updatedAt: body.project.metadata.updatedAt },
    });
    expect(Date.parse(body.project.metadata.updatedAt)).toBeGreaterThanOrEqual(
      Date.parse(project.metadata.updatedAt),
    );
  });

  test("clears a path by an empty one and the description by an empty one", async () => {
    const { id } = await create({ devcontainerFilePath: "x", technicalDescription: "y" });
    const { body } = await call("UpdateProject", {
      projectId: id,
      devcontainerFilePath: "",
      technicalDescription: "",
    });
    expect([body.project.devcontainerFilePath, body.project.technicalDescription]).toEqual(["", ""]);
  });

  test("keeps recommended editors that are absent and clears them by an empty message", async () => {
    const { id } = await create();
    const recommendedEditors = { editors: { code: { versions: ["1"] }, vim: { versions: [] } } };
    const set = await call("UpdateProject", { projectId: id, recommendedEditors });
    expect(set.body.project.recommendedEditors).toEqual(recommendedEditors);
    const kept = await call("UpdateProject", { projectId: id, name: "n" });
    expect(kept.body.project.recommendedEditors).toEqual(recommendedEditors);
    const cleared = await call("UpdateProject", { projectId: id, recommendedEditors: {} });
    expect(cleared.body.project.recommendedEditors).toBeUndefined();
  });

  test("replaces the prebuild configuration as a whole", async () => {
    const { id } = await create({
      prebuildConfiguration: { enabled: true, timeout: "600s", enableIdeWarmup: true },
    });
    const { body } = await call("UpdateProject", {
      projectId: id,
      prebuildConfiguration: { enabled: false },
    });
    expect(body.project.prebuildConfiguration).toMatchObject({
      enabled: false,
      enableIdeWarmup: false,
      timeout: "3600s",
    });
  });

  test("is found under its new repository and no longer under the old", async () => {
    const { id } = await create({ initializer: repository("git@git.example.org:team/old-name.git") });
    const byUri = async (uri: string) =>
      (await call("ListProjects", { filter: { specRemoteUris: [uri] } })).body.projects.map(
        (p: { id: string }) => p.id,
      );
    expect(await byUri("ssh://git@git.example.org/team/old-name.git")).toEqual([id]);
    await call("UpdateProject", {
      projectId: id,
      initializer: repository("https://git.example.org/team/new-name"),
    });
    expect(await byUri("ssh://git@git.example.org/team/old-name.git")).toEqual([]);
    expect(await byUri("https://git.example.org/team/new-name")).toEqual([id]);
  });
});

describe("batches", () => {
  test("let a bad element fail alone, by its index and name, with the words of the rule", async () => {
    const good = { initializer: repository("https://git.example.org/team/good.git") };
    const bad = { ...good, name: "bad", devcontainerFilePath: "/absolute" };
    const { status, body } = await call("CreateProjects", {
      projects: [good, bad, { ...good, name: "third" }],
    });
    expect(status).toBe(200);
    expect(body.createdProjects.map((p: Answer["body"]) => p.metadata.name)).toEqual(["good", "third"]);
    expect(body.failedProjects).toEqual([
      { index: 1, name: "bad", error: "path must not be absolute (start with a /) [devcontainerFilePath]" },
    ]);
  });

  test("update each project on its own and tell which one is absent", async () => {
    const { id } = await create();
    const absent = "0190c0de-0000-7000-8000-000000000000";
    const { body } = await call("UpdateProjects", {
      projects: [
        { projectId: absent, name: "x" },
        { projectId: id, name: "updated in a batch" },
      ],
    });
    expect(body.updatedProjects.map((p: Answer["body"]) => p.metadata.name)).toEqual(["updated in a batch"]);
    expect(body.failedProjects).toEqual([{ index: 0, projectId: absent, error: "project not found" }]);
  });

  test.each([0, 101])("of %d elements are refused as a whole", async (count) => {
    const projects = Array.from({ length: count }, () => ({
      initializer: repository("https://git.example.org/a"),
    }));
    expect((await call("CreateProjects", { projects })).status).toBe(400);
  });

  test("of 100 elements are taken", async () => {
    const projects = Array.from({ length: 100 }, (_, i) => ({
      initializer: repository(`https://git.example.org/r${i}`),
    }));
    const { body } = await call("CreateProjects", { projects });
    expect(body.createdProjects.map((p: Answer["body"]) => p.metadata.name)).toEqual(
      projects.map((_, i) => `r${i}`),
    );
  });

  test("fail as a whole when the JSON does not parse", async () => {
    const answer = await call("CreateProjects", '{"projects": [{"initializer": 7}]}');
    expect([answer.status, reasonOf(answer)]).toEqual([400, "BODY_MALFORMED"]);
  });
});

describe("environment classes of a project", () => {
  test("are ordered, paged, replaced as a list, and fill the deprecated field with the first", async () => {
    const { body: made } = await post(server, "RunnerService/CreateRunner", {
      name: "a runner",
      kind: "RUNNER_KIND_REMOTE",
    });
    const classes: string[] = [];
    for (const displayName of ["small", "large"]) {
      const { body } = await post(server, "RunnerConfigurationService/CreateEnvironmentClass", {
        runnerId: made.runner.runnerId,
        displayName,
        description: "a class",
      });
      classes.push(body.id);
    }
    const { id } = await create();
    const entries = [
      { environmentClassId: classes[1], order: 2 },
      { localRunner: true, order: 3 },
      { environmentClassId: classes[0], order: 1 },
    ];
    const update = await call("UpdateProjectEnvironmentClasses", {
      projectId: id,
      projectEnvironmentClasses: entries,
    });
    expect(update.status).toBe(200);
    const { body } = await call("GetProject", { projectId: id });
    const ordered = [entries[2], entries[0], entries[1]];
    expect(body.project.environmentClasses).toEqual(ordered);
    expect(body.project.environmentClass).toEqual(entries[2]);

    const first = await call("ListProjectEnvironmentClasses", { projectId: id, pagination: { pageSize: 2 } });
    const token = first.body.pagination.nextToken;
    const second = await call("ListProjectEnvironmentClasses", {
      projectId: id,
      pagination: { pageSize: 2, token },
    });
    const paged = [...first.body.projectEnvironmentClasses, ...second.body.projectEnvironmentClasses];
    expect(paged).toEqual(ordered);
    expect(second.body.pagination.nextToken).toBe("");

    const twice = [entries[0], { ...entries[0], order: 9 }];
    const refused = await call("UpdateProjectEnvironmentClasses", {
      projectId: id,
      projectEnvironmentClasses: twice,
    });
    expect([refused.status, reasonOf(refused)]).toEqual([400, "VALUE_UNUSABLE"]);

    const byRunner = await call("ListProjects", { filter: { runnerIds: [made.runner.runnerId] } });
    expect(byRunner.body.projects.map((p: Answer["body"]) => p.id)).toEqual([id]);
    const byKind = await call("ListProjects", {
      filter: { runnerKinds: ["RUNNER_KIND_LOCAL_CONFIGURATION"] },
    });
    expect(byKind.body.projects.map((p: Answer["body"]) => p.id)).toEqual([id]);
  });
});

describe("deleting a project", () => {
  test("marks it, refuses changes to it, and removes it once nothing refers to it", async () => {
    const quick = await startHostedServer({ args: ["--removal-interval", "1"] });
    const ask = (operation: string, body: unknown) => post(quick, operation, body);
    const made = await ask("ProjectService/CreateProject", {
      initializer: repository("https://git.example.org/gone"),
    });
    const projectId = made.body.project.id;
    const used = await ask("EnvironmentService/CreateEnvironmentFromProject", { projectId });
    expect(used.status).toBe(200);
    expect((await ask("ProjectService/DeleteProject", { projectId })).status).toBe(200);
    expect((await ask("ProjectService/DeleteProject", { projectId })).status).toBe(200);

    const listed = await ask("ProjectService/ListProjects", {});
    expect(listed.body.projects[0].desiredPhase).toBe("PROJECT_PHASE_DELETED");
    for (const refused of [
      await ask("ProjectService/UpdateProject", { projectId, name: "x" }),
      await ask("EnvironmentService/CreateEnvironmentFromProject", { projectId }),
      await ask("ProjectService/UpdateProjectEnvironmentClasses", {
        projectId,
        projectEnvironmentClasses: [{ localRunner: true }],
      }),
    ]) {
      expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
        400,
        "failed_precondition",
        "PENDING_DELETION",
      ]);
    }
    await ask("EnvironmentService/DeleteEnvironment", { environmentId: used.body.environment.id });
    let answer: Answer;
    do answer = await ask("ProjectService/GetProject", { projectId });
    while (answer.status === 200);
    expect([answer.status, answer.body.message]).toEqual([404, "project not found"]);
  });
});
