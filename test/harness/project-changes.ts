import { type Answer, post } from "./call.ts";
import type { KnownProject } from "./project-model.ts";
import type { Random } from "./random.ts";
import type { ImportedOrganization } from "./repository-import.ts";
import type { ReachableServer } from "./server.ts";

/** Returns operations that change an imported organization on the server and in its model. */
export function projectChanges(server: ReachableServer, organization: ImportedOrganization) {
  const call = async (operation: string, body: unknown): Promise<Answer["body"]> => {
    const answer = await post(server, operation, body, organization.token);
    if (answer.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const learn = async (id: string, change: (project: KnownProject) => Partial<KnownProject>) => {
    const { project } = await call("ProjectService/GetProject", { projectId: id });
    organization.projects = organization.projects.map((each) => {
      if (each.id !== id) return each;
      const changed = { ...each, ...change(each) };
      const body = changed.body as Answer["body"];
      return {
        ...changed,
        body: { ...body, metadata: { ...body.metadata, updatedAt: project.metadata.updatedAt } },
      };
    });
  };

  return {
    /** Gives a project one to four environment classes, of both runners or local ones, in random order. */
    async setClasses(id: string, random: Random): Promise<void> {
      const choices = organization.runners.flatMap(({ id: runnerId, kind, classIds }) => {
        const runner = { id: runnerId, kind };
        const entries: object[] = classIds.map((environmentClassId) => ({ environmentClassId }));
        return (entries.length > 0 ? entries : [{ localRunner: true }]).map((entry) => ({ runner, entry }));
      });
      const chosen = random
        .some(choices, random.integer(1, 4))
        .map(({ runner, entry }) => ({ runner, entry: { ...entry, order: random.integer(-1, 1) } }));
      await call("ProjectService/UpdateProjectEnvironmentClasses", {
        projectId: id,
        projectEnvironmentClasses: chosen.map(({ entry }) => entry),
      });
      const environmentClasses = chosen
        .map(({ entry }) => entry)
        .toSorted((one, other) => one.order - other.order);
      await learn(id, (project) => ({
        runners: chosen.map(({ runner }) => runner),
        body: { ...project.body, environmentClasses, environmentClass: environmentClasses[0] },
      }));
    },

    /** Creates an environment from a project and returns its id. */
    async use(id: string): Promise<string> {
      const { environment } = await call("EnvironmentService/CreateEnvironmentFromProject", {
        projectId: id,
      });
      const usedBy = {
        totalSubjects: 1,
        subjects: [{ id: organization.creatorId, principal: "PRINCIPAL_USER" }],
      };
      await learn(id, (project) => ({
        uses: [...project.uses, Date.parse(environment.metadata.createdAt)],
        body: { ...project.body, usedBy },
      }));
      return environment.id;
    },

    async removeEnvironment(environmentId: string): Promise<void> {
      await call("EnvironmentService/DeleteEnvironment", { environmentId, force: true });
    },

    /** Marks a project for removal; lists still show it while an environment refers to it. */
    async markDeleted(id: string): Promise<void> {
      await call("ProjectService/DeleteProject", { projectId: id });
      await learn(id, ({ body }) => ({
        body: { ...body, desiredPhase: "PROJECT_PHASE_DELETED" },
      }));
    },
  };
}
