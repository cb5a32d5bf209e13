import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { v7 } from "uuid";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ProjectSchema } from "#gen/service/v1/project_pb.js";
import { newProject } from "../../src/domain/project/project.ts";
import { toBody } from "../../src/store/json.ts";

/** A stored project with the rows that belong to it. */
export interface ProjectRow {
  readonly id: string;
  readonly popularity: number;
  readonly searchText: string;
  readonly usedBy: string;
  readonly body: string;
  readonly remote: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Owner {
  readonly organizationId: string;
  readonly creatorId: string;
}

/** A word in every third project. */
export const COMMON_WORD = "service";

/** A word in all projects of a small organization, but in at most RARE_COUNT projects of a large one. */
export const RARE_WORD = "quartz";
const RARE_COUNT = 800;

/** A word in every third project of the small organizations, and in none of the large one. */
export const ELSEWHERE_WORD = "zephyr";

export const ABSENT_WORD = "xylograph";

const KINDS = [COMMON_WORD, "library", "console", "worker", "gateway", "importer"];
const TOPICS = ["billing", "search", "ledger", "mail", "orders", "maps", "photo", "audit", "render", "index"];
const TEAMS = ["north", "south", "east", "west", "harbour", "meadow", "summit"];

/** Scale of the popularity of projects in use. Scores derive from counts, so the same few values repeat. */
const SCORES = 200;

const FIRST_MS = Date.UTC(2026, 0, 1);

/**
 * Returns project `index` of an organization with `count` projects. It is deterministic except for its id. The body has
 * about 900 bytes, in the form that the server writes.
 */
export function projectRow(owner: Owner, index: number, count: number, isLarge: boolean): ProjectRow {
  const chance = chanceOf(index);
  const at = FIRST_MS + index * 5;
  const id = v7({ msecs: at });
  const kind = isLarge || index % 3 !== 1 ? pick(KINDS, index) : ELSEWHERE_WORD;
  const isRare = index % Math.max(1, Math.ceil(count / RARE_COUNT)) === 0;
  const topic = isRare ? RARE_WORD : pick(TOPICS, Math.floor(chance * 997));
  const repository = `${topic}-${kind}-${index}`;
  const name = `${capital(topic)} ${kind} of ${pick(TEAMS, index)} ${index}`;
  const remote = `https://git.example.org/${pick(TEAMS, index)}/${repository}.git`;
  const popularity = chance < 0.6 ? 0 : Math.log2(1 + Math.floor((chance - 0.6) ** 2 * 6 * SCORES));
  const annotations = { team: pick(TEAMS, index), "example.org/cost-center": String(4000 + (index % 40)) };
  const body = template(owner);
  body.id = id;
  body.metadata.name = name;
  body.metadata.createdAt = new Date(at).toISOString().replace(".000Z", "Z");
  body.metadata.updatedAt = body.metadata.createdAt;
  body.metadata.annotations = annotations;
  body.initializer.specs[0].git.remoteUri = remote;
  return {
    id,
    popularity,
    searchText: `${name}\n${id}\n${repository}`.toLowerCase(),
    usedBy: usedBy(owner, popularity),
    body: JSON.stringify(body),
    remote,
    annotations,
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the canonical JSON of a project, to be filled in
const templates = new Map<string, any>();

/** Returns the fields that all projects share, in the order in which the server writes them. */
function template({ organizationId, creatorId }: Owner) {
  const known = templates.get(organizationId);
  if (known) return known;
  const project = newProject(
    {
      name: "template",
      initializer: create(EnvironmentInitializerSchema, {
        specs: [{ spec: { case: "git", value: { remoteUri: "https://git.example.org/a/b.git" } } }],
      }),
      devcontainerFilePath: ".devcontainer/devcontainer.json",
      automationsFilePath: ".chartroom/automations.yaml",
    },
    {
      id: v7(),
      organizationId,
      creator: create(SubjectSchema, { id: creatorId, principal: Principal.USER }),
      now: FIRST_MS,
    },
  );
  project.recommendedEditors = create(ProjectSchema, {
    recommendedEditors: { editors: { "example-editor": { versions: ["2026.1", "2026.2"] } } },
  }).recommendedEditors as NonNullable<typeof project.recommendedEditors>;
  if (project.metadata) project.metadata.updatedAt = timestampFromMs(FIRST_MS);
  delete project.usedBy;
  const body = JSON.parse(toBody(ProjectSchema, project));
  templates.set(organizationId, body);
  return body;
}

function usedBy({ creatorId }: Owner, popularity: number): string {
  if (popularity === 0) return '{"totalSubjects":0,"subjects":[]}';
  return `{"totalSubjects":1,"subjects":[{"id":"${creatorId}","principal":"PRINCIPAL_USER"}]}`;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function pick<T>(list: readonly T[], index: number): T {
  return list[index % list.length] as T;
}

/** Returns a pseudorandom number from 0 to 1 that depends only on the index. */
function chanceOf(index: number): number {
  const mixed = Math.imul(index + 1, 0x9e3779b1) >>> 0;
  return (Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) >>> 0) / 2 ** 32;
}
