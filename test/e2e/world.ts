import { v7 } from "uuid";
import { type Answer, post, repository } from "../harness/call.ts";
import { addMember } from "../harness/member.ts";
import type { TestServer } from "../harness/server.ts";

/** An id of one resource of every kind that requests name, all of one organization. */
export interface World {
  readonly account: string;
  readonly agent: string;
  readonly agentExecution: string;
  readonly environment: string;
  readonly environmentClass: string;
  readonly hostToken: string;
  readonly integration: string;
  /** A user that is no administrator; `account` is its account. */
  readonly member: string;
  readonly organization: string;
  readonly project: string;
  readonly runner: string;
  readonly secret: string;
  readonly securityPolicy: string;
  readonly serviceAccount: string;
  readonly serviceAccountToken: string;
  readonly session: string;
  readonly token: string;
  readonly user: string;
  readonly webhook: string;
  readonly workflow: string;
  readonly workflowAction: string;
}

export type ResourceKind = keyof World;

/** Ids of nothing, of every kind. */
export function nowhere(): World {
  return {
    account: v7(),
    agent: v7(),
    agentExecution: v7(),
    environment: v7(),
    environmentClass: v7(),
    hostToken: v7(),
    integration: v7(),
    member: v7(),
    organization: v7(),
    project: v7(),
    runner: v7(),
    secret: v7(),
    securityPolicy: v7(),
    serviceAccount: v7(),
    serviceAccountToken: v7(),
    session: v7(),
    token: v7(),
    user: v7(),
    webhook: v7(),
    workflow: v7(),
    workflowAction: v7(),
  };
}

/**
 * Fills the organization of a token with two projects, two environments of one
 * session, a runner with two classes and two credentials, a second member, two service accounts, and
 * two tokens of each kind. What no operation makes yet has an id of nothing.
 */
export async function makeWorld(server: Pick<TestServer, "url" | "token" | "dataDir">): Promise<World> {
  const call = async (operation: string, body: unknown): Promise<Answer["body"]> => {
    const answer = await post(server, operation, body);
    if (answer.status !== 200) throw new Error(`${operation}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const identity = await call("IdentityService/GetAuthenticatedIdentity", {});
  const { runner } = await call("RunnerService/CreateRunner", { name: "In the attic" });
  const classes: string[] = [];
  for (const displayName of ["Small", "Medium"]) {
    const environmentClass = { runnerId: runner.runnerId, displayName, description: "a machine" };
    classes.push((await call("RunnerConfigurationService/CreateEnvironmentClass", environmentClass)).id);
  }
  const environmentClass = classes[0] ?? "";
  const hostTokens: string[] = [];
  for (const host of ["one.example.org", "two.example.org"]) {
    const request = { runnerId: runner.runnerId, host, token: "a credential" };
    const made = await call("RunnerConfigurationService/CreateHostAuthenticationToken", request);
    hostTokens.push(made.token.id);
  }
  const session = v7();
  const environments: string[] = [];
  for (const name of ["First", "Second"]) {
    const initializer = repository("https://git.example.org/team/lonely.git");
    const spec = { content: { initializer }, machine: { class: environmentClass } };
    const made = await call("EnvironmentService/CreateEnvironment", { name, sessionId: session, spec });
    environments.push(made.environment.id);
  }
  const projects: string[] = [];
  for (const name of ["Alpha", "Beta"]) {
    const initializer = repository(`https://git.example.org/team/${name}.git`);
    projects.push((await call("ProjectService/CreateProject", { name, initializer })).project.id);
  }
  const project = projects[0] ?? "";
  await call("ProjectService/UpdateProjectEnvironmentClasses", {
    projectId: project,
    projectEnvironmentClasses: classes.map((environmentClassId, order) => ({ environmentClassId, order })),
  });
  await call("EnvironmentService/CreateEnvironmentFromProject", { projectId: project });
  await call("UserService/CreatePersonalAccessToken", { description: "to be deleted" });
  const { personalAccessTokens } = await call("UserService/ListPersonalAccessTokens", {});
  const member = await addMember(server, {
    organizationId: identity.organizationId,
    email: `${v7()}@example.org`,
  });
  const securityPolicies: string[] = [];
  for (const name of ["No tunnels", "No compilers"]) {
    const organizationId = identity.organizationId;
    const made = await call("SecurityService/CreateSecurityPolicy", {
      organizationId,
      metadata: { name },
      spec: {},
    });
    securityPolicies.push(made.securityPolicy.id);
  }
  const validUntil = "2999-12-31T00:00:00Z";
  const serviceAccounts: string[] = [];
  for (const name of ["Nightly", "Weekly"]) {
    const made = await call("ServiceAccountService/CreateServiceAccount", { name, validUntil });
    serviceAccounts.push(made.serviceAccount.id);
  }
  const serviceAccount = serviceAccounts[0] ?? "";
  const serviceAccountTokens: string[] = [];
  for (const description of ["for the report", "for the mail"]) {
    const request = { serviceAccountId: serviceAccount, description };
    const made = await call("ServiceAccountService/CreateServiceAccountToken", request);
    serviceAccountTokens.push(made.serviceAccountToken.id);
  }
  return {
    ...nowhere(),
    account: member.accountId,
    member: member.userId,
    serviceAccount,
    serviceAccountToken: serviceAccountTokens[0] ?? "",
    organization: identity.organizationId,
    user: identity.subject.id,
    runner: runner.runnerId,
    environmentClass,
    hostToken: hostTokens[0] ?? "",
    environment: environments[0] ?? "",
    securityPolicy: securityPolicies[0] ?? "",
    session,
    project,
    token: personalAccessTokens.at(-1).id,
  };
}
