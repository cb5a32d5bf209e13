import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, repository } from "../harness/call.ts";
import {
  type CredentialFixture,
  type CredentialOwner,
  createCredentialFixture,
  HOST,
  overProject,
  remote,
} from "../harness/credential-fixture.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { LONG_LEASES } from "../harness/lease.ts";
import { leaseAgentExecution } from "../harness/leased-agent-execution.ts";
import { startHostedServer, stopAll } from "../harness/server.ts";

let world: CredentialFixture;
beforeAll(async () => {
  world = await createCredentialFixture(await startHostedServer({ args: LONG_LEASES }));
});
afterAll(stopAll);

const RUNNING = "ENVIRONMENT_PHASE_RUNNING";
const content = (name = "ship") => ({ initializer: repository(remote(name)) });
const machine = () => ({ class: world.runner.environmentClassId });

/** A new environment of a project; what is asked for besides is its spec. */
async function fromProject(projectId: string, by: CredentialOwner, spec: object = {}): Promise<string> {
  const body = { projectId, spec: { desiredPhase: RUNNING, machine: machine(), ...spec } };
  return (await world.call("EnvironmentService/CreateEnvironmentFromProject", body, by)).environment.id;
}

/** A new environment over a repository. */
async function ofRepository(by: CredentialOwner): Promise<string> {
  const spec = { desiredPhase: RUNNING, machine: machine(), content: content() };
  return (await world.call("EnvironmentService/CreateEnvironment", { spec }, by)).environment.id;
}

async function startAgent(by: CredentialOwner, codeContext: object): Promise<string> {
  const body = { codeContext, runnerId: world.runner.runnerId };
  return (await world.call("AgentService/StartAgent", body, by)).agentExecutionId;
}

/** What is handed to the run of an agent, whose environment is up; the run stops with that. */
async function handedToRun(id: string): Promise<string> {
  const work = await leaseAgentExecution(world.runner, id);
  const answer = await world.handed(work);
  await world.fail(work);
  return answer;
}

/** What the refusal of a credential for an environment's source says to do. */
const ENVIRONMENT_ADVICE =
  /make another one, with the repository named in the request, or once an administrator has set/;

describe("an environment from a project", () => {
  test("whose source is another member's, and an agent in it, are asked to name the repository", async () => {
    const { admin, member, runner } = world;
    await fromProject(await world.project(member), admin);
    const work = await runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
    expect((await runner.credential(work, HOST)).body.message).toMatch(ENVIRONMENT_ADVICE);
    await succeeded(runner.finish(work));
    const id = await startAgent(admin, { projectId: await world.project(member) });
    expect(await world.credentialOfNextEnvironment()).toBe("CREDENTIAL_WITHHELD");
    const run = await leaseAgentExecution(runner, id);
    expect((await runner.credential(run, HOST)).body.message).toMatch(ENVIRONMENT_ADVICE);
    await world.fail(run);
  });

  test("is cloned as its creator where that, or an administrator, set the source", async () => {
    const { admin, member, other } = world;
    const sources = [
      [admin, member, "CREDENTIAL_WITHHELD"],
      [other, member, "CREDENTIAL_WITHHELD"],
      [member, member, "member"],
      [member, admin, "member"],
    ] as const;
    for (const [by, setter, expected] of sources) {
      await fromProject(await world.project(setter), by);
      expect(await world.credentialOfNextEnvironment()).toBe(expected);
    }
  });

  test("is cloned as its creator where the request names the source itself", async () => {
    const { admin, member } = world;
    await fromProject(await world.project(member), admin, { content: content() });
    expect(await world.credentialOfNextEnvironment()).toBe("admin");
  });

  test("keeps its source, and whose word that was, when the project changes and it starts again", async () => {
    const { admin, member, runner } = world;
    const projectId = await world.project(member);
    const environmentId = await fromProject(projectId, admin);
    await world.setSource(projectId, admin);
    expect(await world.credentialOfNextEnvironment()).toBe("CREDENTIAL_WITHHELD");
    await world.call("EnvironmentService/StopEnvironment", { environmentId }, admin);
    await succeeded(runner.finish(await runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] })));
    await world.call("EnvironmentService/StartEnvironment", { environmentId }, admin);
    expect(await world.credentialOfNextEnvironment()).toBe("CREDENTIAL_WITHHELD");
  });
});

describe("a project from an environment", () => {
  test("has the source of who chose it for the environment, not of who made the project", async () => {
    const { admin, member } = world;
    const handed = async (maker: CredentialOwner, by: CredentialOwner) => {
      const environmentId = await ofRepository(maker);
      expect(await world.credentialOfNextEnvironment()).not.toBe("CREDENTIAL_WITHHELD");
      const body = { environmentId };
      const { project } = await world.call("ProjectService/CreateProjectFromEnvironment", body, by);
      await world.start(await world.workflow(admin, overProject(project.id)), admin);
      return world.credentialOfNextAction();
    };
    expect(await handed(member, admin)).toBe("CREDENTIAL_WITHHELD");
    expect(await handed(member, member)).toBe("CREDENTIAL_WITHHELD");
    expect(await handed(admin, member)).toBe("admin");
  });
});

describe("an agent run", () => {
  test("over a project gets its creator's credential where that, or an administrator, set the source", async () => {
    const { admin, member } = world;
    for (const [setter, expected] of [
      [member, "CREDENTIAL_WITHHELD"],
      [admin, "admin"],
    ] as const) {
      const id = await startAgent(admin, { projectId: await world.project(setter) });
      expect(await world.credentialOfNextEnvironment()).toBe(expected);
      expect(await handedToRun(id)).toBe(expected);
    }
  });

  test("in an environment of another gets no credential, unless an administrator made that and set its source", async () => {
    const { admin, colleague, member } = world;
    const own = await world.project(admin);
    const environments = [
      [await ofRepository(member), "CREDENTIAL_WITHHELD"],
      // The source is an administrator's word, but the place is the member's.
      [await fromProject(own, member), "CREDENTIAL_WITHHELD"],
      [await ofRepository(colleague), "admin"],
      [await ofRepository(admin), "admin"],
    ] as const;
    for (const _ of environments) await world.credentialOfNextEnvironment();
    for (const [environmentId, expected] of environments) {
      expect(await handedToRun(await startAgent(admin, { environmentId }))).toBe(expected);
    }
  });

  test("gets no credential of its creator once somebody sends to it whose group has the role for that", async () => {
    const { admin, home, member, other } = world;
    const { organizationId } = home;
    const group = { organizationId, name: "Senders" };
    const groupId = (await world.call("GroupService/CreateGroup", group, admin)).group.id;
    await world.call("GroupService/CreateMembership", { groupId, subject: other.subject }, admin);
    const environmentId = await ofRepository(member);
    await world.credentialOfNextEnvironment();
    const id = await startAgent(member, { environmentId });
    const share = { groupId, resourceType: "RESOURCE_TYPE_AGENT_EXECUTION", resourceId: id };
    const role = "RESOURCE_ROLE_USE";
    await world.call("GroupService/CreateRoleAssignment", { ...share, role }, member);
    const work = await leaseAgentExecution(world.runner, id);
    const say = (by: CredentialOwner) => {
      const userInput = { inputs: [{ text: { content: "push it" } }] };
      return world.call("AgentService/SendToAgentExecution", { agentExecutionId: id, userInput }, by);
    };
    await say(admin);
    expect(await world.handed(work)).toBe("member");
    await say(other);
    expect(await world.handed(work)).toBe("CREDENTIAL_WITHHELD");
    await world.fail(work);
  });

  test("that a run starts as its sub-agent gets what that would get", async () => {
    const { admin, member, runner } = world;
    for (const [maker, expected] of [
      [member, "CREDENTIAL_WITHHELD"],
      [admin, "admin"],
    ] as const) {
      const environmentId = await ofRepository(maker);
      await world.credentialOfNextEnvironment();
      const parent = await leaseAgentExecution(runner, await startAgent(admin, { environmentId }));
      const started = await succeeded(runner.agent("StartSubagent", parent, { prompt: "help", key: "a" }));
      expect(await handedToRun(started.agentExecutionId)).toBe(expected);
      await world.fail(parent);
    }
  });

  test("that a step starts gets what its action gets", async () => {
    const { admin, member, robot, runner } = world;
    const steps = {
      action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [{ agent: { prompt: "go" } }] },
    };
    const asRobot = { ...steps, executor: robot.subject };
    const cases = [
      [admin, member, steps, "CREDENTIAL_WITHHELD"],
      [admin, admin, steps, "admin"],
      [member, member, asRobot, "robot"],
      [admin, member, asRobot, "CREDENTIAL_WITHHELD"],
    ] as const;
    for (const [maker, setter, more, expected] of cases) {
      const context = overProject(await world.project(setter));
      await world.start(await world.workflow(maker, context, more), maker);
      const work: Answer["body"] = await world.takeAction();
      await succeeded(runner.report(work, { environment: { phase: RUNNING } }));
      await succeeded(runner.report(work, { steps: [{ stepIndex: 0, state: "STATE_RUNNING" }] }));
      const { agentExecutionId } = await succeeded(runner.agent("StartStepAgent", work, { stepIndex: 0 }));
      expect([await world.handed(work), await handedToRun(agentExecutionId)]).toEqual([expected, expected]);
      await world.fail(work);
    }
  });
});
