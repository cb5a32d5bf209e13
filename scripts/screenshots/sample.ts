import type { Page } from "playwright-core";

/** Milliseconds until a runner has done what is asked of it. */
const WAIT_MS = 120_000;
const NINETY_DAYS_MS = 90 * 86_400_000;

/**
 * Makes what the sample data has none of, so that each page shows something: a group, a service account, a secret, a
 * webhook, a retention policy, an environment in the archive and a prebuild. What is there already is kept.
 */
export async function complete(page: Page): Promise<void> {
  const call = caller(page);
  const { user } = await call("UserService/GetAuthenticatedUser", {});
  const { organizationId } = user;
  const none = async (operation: string, list: string) => (await call(operation, {}))[list].length === 0;
  if (await none("GroupService/ListGroups", "groups")) {
    await call("GroupService/CreateGroup", { organizationId, name: "Reviewers" });
  }
  if (await none("ServiceAccountService/ListServiceAccounts", "serviceAccounts")) {
    await call("ServiceAccountService/CreateServiceAccount", {
      name: "nightly",
      validUntil: new Date(Date.now() + NINETY_DAYS_MS).toISOString(),
    });
  }
  if (await none("SecretService/ListSecrets", "secrets")) {
    const scope = { organizationId };
    await call("SecretService/CreateSecret", {
      ...{ name: "MODEL_KEY", scope, environmentVariable: true, value: "none" },
    });
  }
  if (await none("EventSubscriptionService/ListEventSubscriptions", "eventSubscriptions")) {
    await call("EventSubscriptionService/CreateEventSubscription", {
      ...{ name: "Team chat", url: "https://chat.example.org/hook", eventKinds: ["project.*", "approval.*"] },
    });
  }
  await call("OrganizationService/UpdateOrganizationPolicies", {
    ...{ organizationId, retention: { executions: { days: 90, count: 1000 } } },
  });
  const { projects } = await call("ProjectService/ListProjects", { filter: { search: "hello" } });
  const projectId = projects[0].id as string;
  await completeEnvironments(call, projectId);
  await completePrebuilds(call, projectId);
}

/** Makes an invite to the sample's organization. @returns the secret of its link */
export async function createInvite(page: Page): Promise<string> {
  const call = caller(page);
  const { user } = await call("UserService/GetAuthenticatedUser", {});
  const { invite } = await call("OrganizationService/CreateOrganizationInvite", {
    organizationId: user.organizationId,
  });
  return invite.inviteId;
}

type Call = ReturnType<typeof caller>;

/** Calls operations under the page's session. */
export const caller = (page: Page) => (operation: string, body: object) =>
  page.evaluate(
    async ([path, json]) => {
      const response = await fetch(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: json,
      });
      if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
      return response.json();
    },
    [`/api/service.v1.${operation}`, JSON.stringify(body)] as const,
  );

/** Archives an environment of a project, once it has run and is stopped. */
async function completeEnvironments(call: Call, projectId: string): Promise<void> {
  const archived = { filter: { projectIds: [projectId], archived: true } };
  if ((await call("EnvironmentService/ListEnvironments", archived)).environments.length > 0) return;
  const { environment } = await call("EnvironmentService/CreateEnvironmentFromProject", {
    ...{ projectId, name: "Sample: of last week" },
  });
  const environmentId = environment.id as string;
  const phase = async () =>
    (await call("EnvironmentService/GetEnvironment", { environmentId })).environment.status.phase;
  await until(phase, "ENVIRONMENT_PHASE_RUNNING");
  await call("EnvironmentService/StopEnvironment", { environmentId });
  await until(phase, "ENVIRONMENT_PHASE_STOPPED");
  await call("EnvironmentService/ArchiveEnvironment", { environmentId });
}

/** Has a prebuild made for a project, of the first class that its runner has. */
async function completePrebuilds(call: Call, projectId: string): Promise<void> {
  const list = async () =>
    (await call("PrebuildService/ListPrebuilds", { filter: { projectIds: [projectId] } })).prebuilds;
  if ((await list()).length > 0) return;
  const { environmentClasses } = await call("EnvironmentService/ListEnvironmentClasses", {});
  const environmentClassId = environmentClasses[0].id as string;
  const prebuildConfiguration = { enabled: true, environmentClassIds: [environmentClassId] };
  await call("ProjectService/UpdateProject", { projectId, prebuildConfiguration });
  await call("PrebuildService/CreatePrebuild", { projectId, environmentClassId, spec: {} });
  await until(async () => (await list())[0]?.status.phase, "PREBUILD_PHASE_COMPLETED");
}

/** Waits until something that is read again and again is what is wanted. */
export async function until(read: () => Promise<string>, wanted: string): Promise<void> {
  const end = Date.now() + WAIT_MS;
  let found = await read();
  while (found !== wanted) {
    if (Date.now() > end) throw new Error(`it is ${found} and not ${wanted}`);
    await new Promise((done) => setTimeout(done, 300));
    found = await read();
  }
}
