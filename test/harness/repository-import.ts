import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, post } from "./call.ts";
import { type KnownProject, repositoryNameOf } from "./project-model.ts";
import type { Random } from "./random.ts";
import type { ReachableServer } from "./server.ts";

/** Returns the list of test/data: one URL a line, all different. */
export function repositoryUrls(): string[] {
  const file = join(import.meta.dirname, "../data/repositories.txt");
  return readFileSync(file, "utf8").trimEnd().split("\n");
}

/** CreateProjects accepts at most this many (specification, Limits). */
const BATCH = 100;

/** Names in many scripts, with letters of unusual case and characters that other searches treat specially. */
const NAMES = [
  "Straßenverzeichnis",
  "STRASSENBAU",
  "İstanbul rehberi",
  "ısı haritası",
  "ISI",
  "ΣΊΣΥΦΟΣ",
  "σίσυφος",
  "Ἀθῆναι ᾨδή",
  "Съешь ещё",
  "ЁЖИК в тумане",
  "東京 2026",
  "한국어 안내",
  "שלום עולם",
  "नमस्ते",
  "100 % sure",
  "under_score",
  "back\\slash",
  'it\'s "quoted"',
  "a.b*c+d?",
  "[brackets] (round) {curly}",
  "^caret$ | pipe",
  "ﬀ ligature ﬁ",
  "Kelvin K and k",
  "ſharp s",
  "Ångström Å",
  "µ micro μ",
  "🐧 penguin 🐙",
  "e\u0301 and é",
  "ǅ ǆ Ǆ",
  "Ⅷ ⅷ",
  "ⓐ Ⓐ",
  "𐐀 𐐨 Deseret",
  "Ꭰ ꭰ",
  "x".repeat(80),
];

/** The facts about one organization that the model needs. */
export interface ImportedOrganization {
  readonly token: string;
  readonly creatorId: string;
  readonly runners: readonly {
    readonly id: string;
    readonly kind: string;
    readonly classIds: readonly string[];
  }[];
  /** In order of creation. */
  projects: KnownProject[];
}

export type CreateRequest = ReturnType<typeof createRequests>[number];

/**
 * Returns one request for each URL. Some have names, some more specs; annotations vary, and
 * `group-99`, `group-100` and `group-101` are set on that many projects.
 */
export function createRequests(urls: readonly string[], random: Random) {
  return urls.map((remoteUri, index) => ({
    ...(index % 9 === 0 && { name: NAMES[(index / 9) % NAMES.length] }),
    initializer: {
      specs: [
        { git: { remoteUri } },
        ...(random.chance(0.1) ? [{ git: { remoteUri: random.pick(urls) } }] : []),
        ...(random.chance(0.1) ? [{ contextUrl: { url: "https://context.example.org/only/context" } }] : []),
      ],
    },
    technicalDescription: index % 50 === 0 ? `described ${index}` : "",
    annotations: {
      "example.org/team": random.pick(["red", "green", "blue", "Größe"]),
      ...(random.chance(0.3) && { "example.org/tier": random.pick(["1", "2", ""]) }),
      ...(random.chance(0.1) && { tier: "1" }),
      ...(index < 99 && { "group-99": "yes" }),
      ...(index < 100 && { "group-100": "yes" }),
      ...(index < 101 && { "group-101": "yes" }),
    },
  }));
}

/** Imports the URLs in batches; also returns the response to each batch. */
export async function importRepositories(
  server: ReachableServer,
  token: string,
  requests: readonly CreateRequest[],
): Promise<{ organization: ImportedOrganization; answers: Answer[] }> {
  const answers: Answer[] = [];
  for (let start = 0; start < requests.length; start += BATCH) {
    const projects = requests.slice(start, start + BATCH);
    answers.push(await post(server, "ProjectService/CreateProjects", { projects }, token));
  }
  const created = answers.flatMap(({ body }) => body.createdProjects);
  const projects = created.map((body, index) => known(body, requests[index] as CreateRequest));
  const identity = await post(server, "IdentityService/GetAuthenticatedIdentity", {}, token);
  const organization = {
    token,
    creatorId: identity.body.subject.id,
    runners: await createRunners(server, token),
    projects,
  };
  return { organization, answers };
}

/** Returns the name that the specification gives a project created without one. */
export function derivedName(request: CreateRequest): string {
  return [...repositoryNameOf(request.initializer.specs[0]?.git?.remoteUri ?? "")].slice(0, 80).join("");
}

function known(body: Answer["body"], request: CreateRequest): KnownProject {
  return {
    id: body.id,
    name: request.name ?? derivedName(request),
    creatorId: body.metadata.creator.id,
    remotes: request.initializer.specs.flatMap((spec) => ("git" in spec ? [spec.git?.remoteUri ?? ""] : [])),
    contextUrls: request.initializer.specs.flatMap((spec) =>
      "contextUrl" in spec ? [spec.contextUrl?.url ?? ""] : [],
    ),
    annotations: request.annotations,
    runners: [],
    uses: [],
    body: { ...body, technicalDescription: "" },
  };
}

async function createRunners(
  server: ReachableServer,
  token: string,
): Promise<ImportedOrganization["runners"]> {
  const call = async (operation: string, body: unknown) => (await post(server, operation, body, token)).body;
  const runners: { id: string; kind: string; classIds: string[] }[] = [];
  for (const name of ["first runner", "second runner"]) {
    const { runner } = await call("RunnerService/CreateRunner", { name });
    const classIds: string[] = [];
    for (const displayName of ["small", "large"]) {
      const request = { runnerId: runner.runnerId, displayName, description: "for tests" };
      classIds.push((await call("RunnerConfigurationService/CreateEnvironmentClass", request)).id);
    }
    runners.push({ id: runner.runnerId, kind: runner.kind, classIds });
  }
  const kind = "RUNNER_KIND_LOCAL_CONFIGURATION";
  const local = await call("RunnerService/ListRunners", { filter: { kinds: [kind] } });
  return [...runners, { id: local.runners[0].runnerId, kind, classIds: [] }];
}
