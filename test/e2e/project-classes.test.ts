import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf, repository } from "../harness/call.ts";
import { type ReachableServer, startHostedServer, stopAll } from "../harness/server.ts";

let server: ReachableServer;
beforeAll(async () => {
  server = await startHostedServer();
});
afterAll(stopAll);

async function createClass(kind: string): Promise<string> {
  const { body } = await post(server, "RunnerService/CreateRunner", { name: "a runner", kind });
  const request = { runnerId: body.runner.runnerId, displayName: "a class", description: "a machine" };
  return (await post(server, "RunnerConfigurationService/CreateEnvironmentClass", request)).body.id;
}

test("a project cannot be bound to a class of a local runner, and keeps the classes that it has", async () => {
  const remote = await createClass("RUNNER_KIND_REMOTE");
  const local = await createClass("RUNNER_KIND_LOCAL");
  const initializer = repository("https://git.example.org/team/hello.git");
  const { body } = await post(server, "ProjectService/CreateProject", { initializer });
  const projectId = body.project.id;
  const setClasses = (projectEnvironmentClasses: object[]): Promise<Answer> =>
    post(server, "ProjectService/UpdateProjectEnvironmentClasses", { projectId, projectEnvironmentClasses });

  expect((await setClasses([{ environmentClassId: remote }])).status).toBe(200);
  const refused = await setClasses([{ environmentClassId: remote }, { environmentClassId: local }]);
  expect([refused.status, refused.body.code, reasonOf(refused)]).toEqual([
    400,
    "invalid_argument",
    "VALUE_UNUSABLE",
  ]);
  const listed = await post(server, "ProjectService/ListProjectEnvironmentClasses", { projectId });
  expect(listed.body.projectEnvironmentClasses).toEqual([{ environmentClassId: remote, order: 0 }]);
});

test("a project made from an environment on a local runner uses each user's local runner", async () => {
  const spec = {
    machine: { class: await createClass("RUNNER_KIND_LOCAL") },
    content: { initializer: repository("https://git.example.org/team/local.git") },
  };
  const made = await post(server, "EnvironmentService/CreateEnvironment", { spec });
  const environmentId = made.body.environment.id;
  const { status, body } = await post(server, "ProjectService/CreateProjectFromEnvironment", {
    environmentId,
  });
  expect(status).toBe(200);
  expect(body.project.environmentClasses).toEqual([{ localRunner: true, order: 0 }]);
});
