import { repository } from "../harness/call.ts";
import type { Random } from "../harness/random.ts";
import { isMarked, isSame, type Ledger } from "./ledger.ts";
import type { Body, State } from "./state.ts";

/** One write and its expected effect. */
export interface Write {
  /** Such as `ProjectService/CreateProject`. */
  readonly operation: string;
  readonly request: object;
  /** Records the response in the ledger. */
  acknowledge(answer: Body): void;
  /**
   * For a write without a response: finds out whether it happened and records that in the ledger.
   *
   * @throws Error when it happened in part
   */
  resolve(state: State, descriptions: ReadonlyMap<string, string>): void;
}

/** The resources of one client, to which only this client writes. */
export interface Client {
  readonly name: string;
  readonly projects: Set<string>;
  readonly environments: Set<string>;
  /** Makes names unique. */
  count: number;
}

/** Returns a random next write of a client to its own resources. */
export function nextWrite(random: Random, ledger: Ledger, client: Client): Write {
  const usable = [...client.projects].filter(
    (id) => !isMarked(ledger.projects.get(id) ?? { desiredPhase: "PROJECT_PHASE_DELETED" }),
  );
  const environments = [...client.environments];
  if (usable.length < 4) return createProjects(random, ledger, client);
  const kinds: (() => Write)[] = [
    () => createProject(random, ledger, client),
    () => createProjects(random, ledger, client),
    () => updateProject(random, ledger, random.pick(usable)),
    () => updateProject(random, ledger, random.pick(usable)),
    () => updateProjects(random, ledger, random.some(usable, 3)),
    () => deleteProject(ledger, random.pick(usable)),
    () => createEnvironment(ledger, client, random.pick(usable)),
  ];
  if (environments.length > 0) {
    kinds.push(
      () => setPhase(ledger, random.pick(environments), random.chance(0.5)),
      () => deleteEnvironment(ledger, client, random.pick(environments)),
    );
  }
  return random.pick(kinds)();
}

interface NewProject {
  readonly name: string;
  readonly technicalDescription: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly initializer: object;
}

function newProject(random: Random, client: Client): NewProject {
  const name = `${client.name} ${client.count++}`;
  return {
    name,
    technicalDescription: name.repeat(random.integer(0, 200)),
    annotations: { client: client.name, number: String(client.count) },
    initializer: repository(`https://git.example.org/${encodeURIComponent(name)}.git`),
  };
}

function learnProject(
  ledger: Ledger,
  client: Client,
  project: Body,
  description = project.technicalDescription,
): void {
  ledger.projects.set(project.id, { ...project, technicalDescription: "" });
  ledger.descriptions.set(project.id, description);
  client.projects.add(project.id);
}

/**
 * Checks a project whose creation was not acknowledged: it must have everything that was requested,
 * or the write was torn.
 */
function adoptProject(
  ledger: Ledger,
  client: Client,
  asked: NewProject,
  project: Body,
  descriptions: ReadonlyMap<string, string>,
): void {
  const { name, annotations, technicalDescription } = asked;
  const { metadata, initializer, desiredPhase } = project;
  const found = [
    metadata.name,
    metadata.annotations,
    desiredPhase,
    initializer.specs[0].git.remoteUri,
    descriptions.get(project.id),
  ];
  const remote = `https://git.example.org/${encodeURIComponent(name)}.git`;
  if (!isSame([name, annotations, "PROJECT_PHASE_ACTIVE", remote, technicalDescription], found)) {
    throw new Error(`a project was created in part: ${JSON.stringify(found)}`);
  }
  learnProject(ledger, client, project, technicalDescription);
}

const named = (bodies: ReadonlyMap<string, Body>, name: string): Body[] =>
  [...bodies.values()].filter(({ metadata }) => metadata.name === name);

function createProject(random: Random, ledger: Ledger, client: Client): Write {
  const asked = newProject(random, client);
  return {
    operation: "ProjectService/CreateProject",
    request: asked,
    acknowledge: ({ project }) => learnProject(ledger, client, project),
    resolve(state, descriptions) {
      for (const project of named(state.projects, asked.name))
        adoptProject(ledger, client, asked, project, descriptions);
    },
  };
}

function createProjects(random: Random, ledger: Ledger, client: Client): Write {
  const projects = Array.from({ length: random.integer(2, 6) }, () => newProject(random, client));
  return {
    operation: "ProjectService/CreateProjects",
    request: { projects },
    acknowledge({ createdProjects }) {
      for (const project of createdProjects) learnProject(ledger, client, project);
    },
    resolve(state, descriptions) {
      const found = projects.map((asked) => named(state.projects, asked.name));
      requireFirst(found.map(({ length }) => length === 1));
      for (const [index, [project]] of found.entries()) {
        if (project) adoptProject(ledger, client, projects[index] as NewProject, project, descriptions);
      }
    },
  };
}

/** Requires that the written elements of a batch are its first ones: its parts are committed in order. */
function requireFirst(written: readonly boolean[]): void {
  const firstMissing = written.indexOf(false);
  if (firstMissing !== -1 && written.includes(true, firstMissing)) {
    throw new Error(`of the elements of one batch these are written: ${written}`);
  }
}

interface Update {
  readonly projectId: string;
  readonly name: string;
  readonly technicalDescription: string;
  readonly automationsFilePath: string;
}

function newUpdate(random: Random, ledger: Ledger, projectId: string): Update {
  const { metadata } = ledger.projects.get(projectId);
  return {
    projectId,
    // The first word stays: names tell which client wrote them.
    name: `${metadata.name.split("~")[0]}~${random.integer(0, 999_999)}`,
    technicalDescription: `updated ${random.integer(0, 999_999)}`,
    automationsFilePath: `${random.integer(0, 999_999)}.yaml`,
  };
}

/** Returns whether the update happened. */
function resolveUpdate(
  ledger: Ledger,
  update: Update,
  state: State,
  descriptions: ReadonlyMap<string, string>,
): boolean {
  const { projectId, name, technicalDescription, automationsFilePath } = update;
  const before = ledger.projects.get(projectId);
  const after = {
    ...before,
    automationsFilePath,
    metadata: { ...before.metadata, name, updatedAt: undefined },
  };
  const found = state.projects.get(projectId);
  const description = descriptions.get(projectId);
  if (isSame(after, found) && description === technicalDescription) {
    ledger.projects.set(projectId, found);
    ledger.descriptions.set(projectId, technicalDescription);
    return true;
  }
  if (isSame(before, found) && description === ledger.descriptions.get(projectId)) return false;
  throw new Error(`an update happened in part: ${JSON.stringify(update)} became ${JSON.stringify(found)}`);
}

function updateProject(random: Random, ledger: Ledger, projectId: string): Write {
  const update = newUpdate(random, ledger, projectId);
  return {
    operation: "ProjectService/UpdateProject",
    request: update,
    acknowledge({ project }) {
      ledger.projects.set(projectId, { ...project, technicalDescription: "" });
      ledger.descriptions.set(projectId, project.technicalDescription);
    },
    resolve: (state, descriptions) => void resolveUpdate(ledger, update, state, descriptions),
  };
}

function updateProjects(random: Random, ledger: Ledger, ids: readonly string[]): Write {
  const updates = ids.map((id) => newUpdate(random, ledger, id));
  return {
    operation: "ProjectService/UpdateProjects",
    request: { projects: updates },
    acknowledge({ updatedProjects }) {
      for (const project of updatedProjects) {
        ledger.projects.set(project.id, { ...project, technicalDescription: "" });
        ledger.descriptions.set(project.id, project.technicalDescription);
      }
    },
    resolve(state, descriptions) {
      const happened = updates.map((update) => resolveUpdate(ledger, update, state, descriptions));
      requireFirst(happened);
    },
  };
}

function deleteProject(ledger: Ledger, projectId: string): Write {
  const before = ledger.projects.get(projectId);
  const marked = {
    ...before,
    desiredPhase: "PROJECT_PHASE_DELETED",
    metadata: { ...before.metadata, updatedAt: undefined },
  };
  return {
    operation: "ProjectService/DeleteProject",
    request: { projectId },
    acknowledge: () => void ledger.projects.set(projectId, marked),
    resolve({ projects }) {
      const found = projects.get(projectId);
      if (found ? isMarked(found) : true) ledger.projects.set(projectId, marked);
    },
  };
}

function createEnvironment(ledger: Ledger, client: Client, projectId: string): Write {
  const name = `${client.name} environment ${client.count++}`;
  const project = ledger.projects.get(projectId);
  const learn = (environment: Body) => {
    const { creator } = environment.metadata;
    ledger.environments.set(environment.id, environment);
    ledger.projects.set(projectId, { ...project, usedBy: { totalSubjects: 1, subjects: [creator] } });
    client.environments.add(environment.id);
  };
  return {
    operation: "EnvironmentService/CreateEnvironmentFromProject",
    request: { projectId, name },
    acknowledge: ({ environment }) => learn(environment),
    resolve({ environments }) {
      for (const environment of named(environments, name)) {
        const { metadata, spec } = environment;
        if (!isSame([projectId, project.initializer], [metadata.projectId, spec.content.initializer])) {
          throw new Error(`an environment was created in part: ${JSON.stringify(environment)}`);
        }
        learn(environment);
      }
    },
  };
}

function setPhase(ledger: Ledger, environmentId: string, running: boolean): Write {
  const before = ledger.environments.get(environmentId);
  const desiredPhase = `ENVIRONMENT_PHASE_${running ? "RUNNING" : "STOPPED"}`;
  const changes = before.spec.desiredPhase !== desiredPhase;
  const after = {
    ...before,
    metadata: { ...before.metadata, ...(running && { lastStartedAt: undefined }) },
    spec: {
      ...before.spec,
      desiredPhase,
      specVersion: String(Number(before.spec.specVersion) + (changes ? 1 : 0)),
    },
  };
  return {
    operation: `EnvironmentService/${running ? "Start" : "Stop"}Environment`,
    request: { environmentId },
    acknowledge: () => void ledger.environments.set(environmentId, after),
    resolve({ environments }) {
      if (isSame(after, environments.get(environmentId))) ledger.environments.set(environmentId, after);
    },
  };
}

function deleteEnvironment(ledger: Ledger, client: Client, environmentId: string): Write {
  const forget = () => {
    ledger.environments.delete(environmentId);
    client.environments.delete(environmentId);
  };
  return {
    operation: "EnvironmentService/DeleteEnvironment",
    request: { environmentId },
    acknowledge: forget,
    resolve({ environments }) {
      if (!environments.has(environmentId)) forget();
    },
  };
}
