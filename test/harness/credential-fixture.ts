import { builderOf } from "../../src/store/query-builder.ts";
import { OPERATOR } from "../../src/store/store.ts";
import { type Answer, post, reasonOf, repository } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import { type AgentFixture, createAgentFixture } from "./leased-agent-execution.ts";
import { insertServiceAccountToken } from "./machine-token.ts";
import { addMember, type TestMember, withServerData } from "./member.ts";
import type { ReachableServer } from "./server.ts";

/** A user or service account with its own credential for the host. */
export interface CredentialOwner {
  readonly token: string;
  /** Empty for a service account. */
  readonly accountId: string;
  readonly subject: { readonly id: string; readonly principal: string };
}

/** The host that each of them has a credential for: `credential of NAME`. */
export const HOST = "git.example.org";
export const remote = (name: string) => `https://${HOST}/team/${name}.git`;
export const overProject = (projectId: string) => ({ projects: { projectIds: [projectId] } });

/**
 * An organization in which an administrator, two members and a service account have credentials for
 * one host.
 */
export type CredentialFixture = Awaited<ReturnType<typeof createCredentialFixture>>;

export async function createCredentialFixture(server: ReachableServer) {
  const home = await createAgentFixture(server);
  const people = await makePeople(server, home);
  for (const [name, { token }] of Object.entries(people)) {
    const request = { runnerId: home.runner.runnerId, host: HOST, token: `credential of ${name}` };
    await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", request, token));
  }
  const call = (operation: string, body: object, { token }: Pick<CredentialOwner, "token">) =>
    succeeded(post(server, operation, body, token));
  const { runner } = home;
  const fail = (work: Answer["body"]) =>
    succeeded(
      runner.finish(work, "OUTCOME_FAILED", { failure: { reason: "ended", message: "by the test" } }),
    );
  return {
    home,
    runner,
    ...people,
    call,
    /** Creates a project of a repository and returns its id. */
    async project(of: CredentialOwner, name = "ship", more: object = {}): Promise<string> {
      const body = { initializer: repository(remote(name)), ...more };
      return (await call("ProjectService/CreateProject", body, of)).project.id;
    },
    setSource: (projectId: string, by: CredentialOwner, name = "ship") =>
      call("ProjectService/UpdateProject", { projectId, initializer: repository(remote(name)) }, by),
    /** Creates a workflow of one action with a context and returns its id. */
    async workflow(of: CredentialOwner, context: object, more: object = {}): Promise<string> {
      const { workflow } = await call(
        "WorkflowService/CreateWorkflow",
        {
          name: "Nightly",
          triggers: [{ manual: {}, context }],
          action: { limits: { maxParallel: 1, maxTotal: 5 }, steps: [{ task: { command: "true" } }] },
          ...more,
        },
        of,
      );
      return workflow.id;
    },
    start: (workflowId: string, by: CredentialOwner, more: object = {}) =>
      call("WorkflowService/StartWorkflow", { workflowId, ...more }, by),
    /** Fails leased work. */
    fail,
    takeAction: () => runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] }),
    handed: async (work: Answer["body"]) => handed(await runner.credential(work, HOST)),
    /** Returns the credential given to the next leased action, and fails the action. */
    async credentialOfNextAction(): Promise<string> {
      const work = await runner.leaseOne({ kinds: ["WORK_KIND_ACTION"] });
      const answer = handed(await runner.credential(work, HOST));
      await fail(work);
      return answer;
    },
    /**
     * Returns the credential given to the next environment that is brought up; works that take
     * others down are finished.
     */
    async credentialOfNextEnvironment(): Promise<string> {
      for (;;) {
        const work = await runner.leaseOne({ kinds: ["WORK_KIND_ENVIRONMENT"] });
        const isWantedUp = work.environment.environment.spec.desiredPhase === "ENVIRONMENT_PHASE_RUNNING";
        const answer = isWantedUp ? handed(await runner.credential(work, HOST)) : undefined;
        await succeeded(runner.finish(work));
        if (answer !== undefined) return answer;
      }
    },
  };
}

/** Returns the owner of the credential in a response, or the reason of its error. */
export function handed(answer: Answer): string {
  if (answer.status === 200) return answer.body.token.replace("credential of ", "");
  return reasonOf(answer) ?? "";
}

async function makePeople(
  server: ReachableServer,
  { organizationId, administrator, member }: AgentFixture,
): Promise<Readonly<Record<"admin" | "colleague" | "member" | "other" | "robot", CredentialOwner>>> {
  const joined = (email: string, isAdministrator = false) =>
    addMember(server, {
      organizationId,
      email: `${email}@${organizationId}`,
      administrator: isAdministrator,
    });
  const user = ({ token, accountId, userId }: TestMember): CredentialOwner => ({
    token,
    accountId,
    subject: { id: userId, principal: "PRINCIPAL_USER" },
  });
  const robot = await withServerData(server, (store, keys) =>
    insertServiceAccountToken(store, keys, {
      organizationId,
      creatorAccountId: administrator.accountId,
      description: "robot",
    }),
  );
  const { body } = await post(server, "IdentityService/GetAuthenticatedIdentity", {}, robot.value);
  // Prebuilds are made on days after today, when the account must still be valid.
  await withServerData(server, (store) =>
    store.write(OPERATOR, "test", async ({ db, now }) => {
      const valid_until = now + 365 * 24 * 3_600_000;
      await builderOf(db)
        .updateTable("service_account")
        .set({ valid_until })
        .where("id", "=", body.subject.id)
        .execute();
    }),
  );
  return {
    admin: user(administrator),
    colleague: user(await joined("colleague", true)),
    member: user(member),
    other: user(await joined("other")),
    robot: { token: robot.value, accountId: "", subject: body.subject },
  };
}
