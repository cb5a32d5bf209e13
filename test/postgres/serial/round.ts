import type { OpenData } from "../../../src/commands/open-data.ts";
import { createOrganizationWithToken } from "../../../src/services/access/organization-creation.ts";
import { type Answer, post, reasonOf } from "../../harness/call.ts";
import { type FakeRunner, registerRunner, succeeded } from "../../harness/fake-runner.ts";
import { insertTestMember, type TestMember } from "../../harness/member.ts";
import type { Random } from "../../harness/random.ts";
import type { TestServer } from "../../harness/server.ts";
import { task } from "../../harness/started-execution.ts";
import type { Operation, Person, Place } from "./model.ts";
import type { Answered } from "./serial-order.ts";

/** An organization of a round, with what the operations need. */
interface Stage extends Record<Person, TestMember> {
  readonly organizationId: string;
  /** Of the first administrator. */
  readonly token: string;
  readonly runner: FakeRunner;
  /** Carl's. */
  readonly workflowId: string;
}

/** Creates the two organizations of a round; its people are members of both. */
export async function newStages(
  { store, keys }: OpenData,
  server: TestServer,
  name: string,
): Promise<Stage[]> {
  const stages: Stage[] = [];
  for (const place of [0, 1]) {
    const { organizationId, token } = await createOrganizationWithToken(store, keys, {
      operation: "test",
      organizationName: `${name}-${place}`,
      accountName: "First",
      email: `first-${name}@example.org`,
    });
    const join = (person: Person) =>
      insertTestMember(store, keys, { organizationId, email: `${person}-${name}@example.org` });
    const [ann, carl] = [await join("ann"), await join("carl")];
    const runner = await registerRunner(server, { token });
    const { environmentClassId } = runner;
    const repositoryUrls = { repoUrls: ["https://git.example.org/team/ship.git"] };
    const { workflow } = await succeeded(
      post(
        server,
        "WorkflowService/CreateWorkflow",
        {
          name: "Ship",
          triggers: [{ manual: {}, context: { repositories: { repositoryUrls, environmentClassId } } }],
          action: { limits: { maxParallel: 1, maxTotal: 1 }, steps: [task("true")] },
        },
        carl.token,
      ),
    );
    stages.push({ organizationId, token, ann, carl, runner, workflowId: workflow.id });
  }
  return stages;
}

/** Calls an operation. @returns what the model takes as its answer @throws Error for an answer that no rule explains */
async function call(server: TestServer, operation: Operation, stage: Stage): Promise<string> {
  const { organizationId, token, ann, carl, runner, workflowId } = stage;
  const asked = async (
    name: string,
    body: object,
    as: string,
    read: (body: Answer["body"]) => string = () => "done",
  ): Promise<string> => {
    const answer = await post(server, name, body, as);
    if (answer.status === 200) return read(answer.body);
    const reason = reasonOf(answer);
    if (answer.status < 500 && reason !== undefined) return reason;
    throw new Error(`${name} was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
  };
  switch (operation.kind) {
    case "block":
    case "unblock": {
      const { accountId } = stage[operation.person];
      const [name, reason] =
        operation.kind === "block" ? ["BlockAccount", { reason: "test" }] : ["UnblockAccount", {}];
      return asked(`AccountService/${name}`, { accountId, ...reason }, token);
    }
    case "remove":
      return asked(
        "OrganizationService/RemoveMember",
        { organizationId, userId: stage[operation.person].userId },
        token,
      );
    case "role": {
      const role = operation.administrator ? "ORGANIZATION_ROLE_ADMIN" : "ORGANIZATION_ROLE_MEMBER";
      return asked("OrganizationService/SetRole", { organizationId, userId: ann.userId, role }, token);
    }
    case "limit":
    case "limit-by-ann":
      return asked(
        "OrganizationService/UpdateOrganizationPolicies",
        { organizationId, maximumEnvironmentsPerUser: String(operation.limit) },
        operation.kind === "limit" ? token : ann.token,
      );
    case "read-limit":
      return asked("OrganizationService/GetOrganizationPolicies", { organizationId }, token, ({ policies }) =>
        String(policies.maximumEnvironmentsPerUser),
      );
    case "create":
      return asked("EnvironmentService/CreateEnvironment", {}, ann.token);
    case "count":
      return asked(
        "EnvironmentService/ListEnvironments",
        { filter: { creatorIds: [ann.userId] }, pagination: { pageSize: 100 } },
        token,
        ({ environments }) => String(environments.length),
      );
    case "start":
      return asked(
        "WorkflowService/StartWorkflow",
        { workflowId },
        carl.token,
        ({ workflowExecution }) => workflowExecution.id,
      );
    case "lease":
      return asked(
        "WorkService/LeaseWork",
        { maxLeases: 1, wait: "0s", kinds: ["WORK_KIND_ACTION"] },
        runner.token,
        ({ works }) => works[0]?.action.workflowExecutionId ?? "nothing",
      );
  }
}

/** How often each kind of operation is chosen, compared with the others. */
const WEIGHTS: Readonly<Record<Operation["kind"], number>> = {
  create: 8,
  start: 5,
  lease: 8,
  limit: 3,
  "limit-by-ann": 3,
  block: 2,
  unblock: 3,
  role: 2,
  remove: 1,
  count: 2,
  "read-limit": 1,
};
const KINDS = listOf(WEIGHTS);

/** What is done before a program, one after the other, so that there is something to lease and a limit to reach. */
const FIRST_KINDS = listOf({ start: 4, limit: 3, role: 2, create: 1 });

function listOf(weights: Readonly<Partial<Record<Operation["kind"], number>>>): readonly Operation["kind"][] {
  return Object.entries(weights).flatMap(([kind, weight]) =>
    Array.from({ length: weight }, () => kind as Operation["kind"]),
  );
}

function newOperation(random: Random, kinds: readonly Operation["kind"][]): Operation {
  const kind = random.pick(kinds);
  // Mostly the same, where they meet.
  const place: Place = random.chance(0.75) ? 0 : 1;
  switch (kind) {
    case "block":
    case "unblock":
    case "remove":
      return { kind, place, person: random.pick(["ann", "carl"] as const) };
    case "role":
      return { kind, place, administrator: random.chance(0.7) };
    case "limit":
    case "limit-by-ann":
      return { kind, place, limit: random.integer(1, 2) };
    default:
      return { kind, place };
  }
}

/**
 * Runs a random program: some operations one after the other, and then several clients at once, each one operation after
 * the other. Each operation is called at any of the servers.
 * @returns the first operations, and those of each client
 */
export async function runProgram(
  random: Random,
  servers: readonly TestServer[],
  stages: readonly Stage[],
  clients: number,
): Promise<Answered[][]> {
  const newProgram = (length: number, kinds: readonly Operation["kind"][]) =>
    Array.from({ length }, () => ({
      operation: newOperation(random, kinds),
      server: random.integer(0, servers.length - 1),
    }));
  const opening = newProgram(random.integer(2, 4), FIRST_KINDS);
  const programs = Array.from({ length: clients }, () => newProgram(random.integer(3, 4), KINDS));
  const began = performance.now();
  const sinceBegin = () => performance.now() - began;
  const run = async (program: typeof opening) => {
    const answered: Answered[] = [];
    for (const { operation, server } of program) {
      const beganMs = sinceBegin();
      const answer = await call(servers[server] as TestServer, operation, stages[operation.place] as Stage);
      answered.push({ operation, server, answer, beganMs, endedMs: sinceBegin() });
    }
    return answered;
  };
  return [await run(opening), ...(await Promise.all(programs.map(run)))];
}
