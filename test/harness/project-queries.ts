import { type KnownProject, type ListQuery, remoteFormsOf, repositoryNameOf } from "./project-model.ts";
import type { Random } from "./random.ts";
import type { ImportedOrganization } from "./repository-import.ts";

/** URIs that a filter surely accepts: ASCII, with a scheme, and nothing that needs an escape. */
const PLAIN_URI = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9.@:~-]+\/[a-z0-9/._~@:+-]*$/i;

const SPECIAL_SEARCHES = [
  "%",
  "_",
  "\\",
  "'",
  '"',
  "*",
  "?",
  ".",
  "-",
  "+",
  "[",
  "(",
  "|",
  "^",
  "$",
  "/",
  " ",
  "%%",
  "__",
  "ß",
  "ẞ",
  "ss",
  "SS",
  "İ",
  "i",
  "ı",
  "I",
  "K",
  "K",
  "ſ",
  "Σ",
  "ς",
  "σ",
  "Μ",
  "µ",
  "Å",
  "ﬀ",
  "ff",
  "é",
  "e\u0301",
  "\u0301",
  "ё",
  "Ё",
  "🐧",
  "ὠ",
  "ᾨ",
  "ǅ",
  "Ⅷ",
  "ⓐ",
  "𐐀",
  "ꭰ",
  "東",
  "git",
  ".git",
  "ё",
  "no such text anywhere",
  "-7",
  "0190",
  "\u0001",
  "\t",
  "\u200b",
];

/**
 * Returns a ListProjects request: a random combination of filters around a project that it may
 * match, and an order.
 */
export function randomQuery(
  random: Random,
  own: ImportedOrganization,
  other: ImportedOrganization,
): ListQuery {
  const target = random.chance(0.7) ? random.pick(own.projects) : undefined;
  const filter = randomFilter(random, own, other, target);
  const sort = randomSort(random);
  return {
    ...((Object.keys(filter).length > 0 || random.chance(0.3)) && { filter }),
    ...(sort && { sort }),
    ...(random.chance(0.7) && { count: { include: random.chance(0.8) } }),
  };
}

function randomFilter(
  random: Random,
  own: ImportedOrganization,
  other: ImportedOrganization,
  target: KnownProject | undefined,
): NonNullable<ListQuery["filter"]> {
  const around = target ?? random.pick(own.projects);
  const withTarget = (value: string | undefined, rest: readonly string[], most: number) => [
    ...(target && value !== undefined ? [value] : []),
    ...random.some(rest, random.integer(target ? 0 : 1, most - 1)),
  ];
  return {
    ...(random.chance(0.15) && {
      projectIds: withTarget(target?.id, [...idsOf(own), ...random.some(idsOf(other), 3)], 25).map((id) =>
        random.chance(0.1) ? id.toUpperCase() : id,
      ),
    }),
    ...(random.chance(0.5) && { search: randomSearch(random, around) }),
    ...(random.chance(0.25) && {
      runnerIds: withTarget(
        target?.runners[0]?.id,
        [...own.runners, ...other.runners].map(({ id }) => id),
        4,
      ),
    }),
    ...(random.chance(0.2) && { runnerKinds: withTarget(target?.runners[0]?.kind, RUNNER_KINDS, 4) }),
    ...(random.chance(0.15) && { specRemoteUris: random.some(uris(random, around, own), 25) }),
    ...(random.chance(0.15) && {
      creatorIds: withTarget(target?.creatorId, [other.creatorId, own.runners[0]?.id ?? ""], 3),
    }),
    ...(random.chance(0.25) && { annotations: randomPairs(random, around) }),
  };
}

const RUNNER_KINDS = [
  "RUNNER_KIND_UNSPECIFIED",
  "RUNNER_KIND_LOCAL",
  "RUNNER_KIND_REMOTE",
  "RUNNER_KIND_LOCAL_CONFIGURATION",
];

/** The contract's limit of a URI; the longest remote with a slash appended would exceed it. */
const URI_MAX_CHARACTERS = 2048;

function idsOf({ projects }: ImportedOrganization): string[] {
  return projects.map(({ id }) => id);
}

function uris(random: Random, around: KnownProject, { projects }: ImportedOrganization): string[] {
  const some = [around, ...random.some(projects, random.integer(0, 15))];
  const found = some
    .flatMap(({ remotes }) => remotes)
    .flatMap(remoteFormsOf)
    .filter((uri) => PLAIN_URI.test(uri));
  const nearly = found
    .slice(0, 2)
    .flatMap((uri) => [`${uri}/`, uri.toUpperCase(), uri.replace(/\.git$/, "")]);
  const all = new Set([...found, ...nearly, "https://git.example.org/no/such.git"]);
  return [...all].filter((uri) => uri.length <= URI_MAX_CHARACTERS);
}

function randomPairs(random: Random, { annotations }: KnownProject): Record<string, string> {
  const pairs = random.some(Object.entries(annotations), random.integer(1, 3));
  return Object.fromEntries(
    pairs.map(([key, value]) => [key, random.chance(0.2) ? random.pick(["red", "yes", "1", ""]) : value]),
  );
}

/**
 * Returns a character, a part or the whole of a text by which the project can be found, in random
 * case; or a special text.
 */
function randomSearch(random: Random, { id, name, remotes }: KnownProject): string {
  if (random.chance(0.35)) return random.pick(SPECIAL_SEARCHES);
  const text = [...random.pick([name, id, ...remotes.map(repositoryNameOf)])];
  const length = random.pick([1, 1, 2, 3, random.integer(1, text.length || 1), text.length]);
  const start = random.integer(0, Math.max(0, text.length - length));
  const part = text.slice(start, Math.min(start + length, start + 250)).join("");
  const search = random.pick([part, part, part.toUpperCase(), part.toLowerCase(), `${part}x`]);
  return [...search].slice(0, 256).join("");
}

function randomSort(random: Random): ListQuery["sort"] | undefined {
  const field = random.pick(["id", "id", "popularity", "popularity", undefined]);
  const order = random.pick([
    "SORT_ORDER_ASC",
    "SORT_ORDER_DESC",
    "SORT_ORDER_UNSPECIFIED",
    undefined,
    undefined,
  ]);
  if (field === undefined && order === undefined) return random.chance(0.5) ? {} : undefined;
  return { ...(field !== undefined && { field }), ...(order !== undefined && { order }) };
}
