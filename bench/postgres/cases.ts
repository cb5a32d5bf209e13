import { CASES, type Case } from "../cases.ts";
import { SEARCH_KINDS, type SearchKind } from "../growth/searches.ts";
import type { PeerName } from "../peers/start-peer.ts";
import { type Ratio, ratio } from "../ratios.ts";

const READERS: readonly PeerName[] = ["ours", "pg-ceiling", "pg-connect-node"];
const GROUPED: readonly PeerName[] = ["ours", "one-commit-each"];
const WRITERS: readonly PeerName[] = [...GROUPED, "pg-connect-node"];

const create32 = like("create32", GROUPED);

/** The cases for peers on PostgreSQL: some of bench/cases.ts and an additional one. */
export const POSTGRES_CASES: readonly Case[] = [
  like("get", READERS),
  like("list25", READERS),
  like("list100", READERS),
  {
    ...create32,
    name: "create20x",
    title: "CreateProject, durable, 32 connections, in 20 organizations",
    peers: WRITERS,
    // Each connection cycles through all organizations and begins at a different one.
    requests: (data) =>
      create32.requests(data).map((request, index) => {
        const token = data.otherTokens[index % data.otherTokens.length];
        return { ...request, ...(token && { token }) };
      }),
  },
  create32,
  like("create1", GROUPED),
  like("update", GROUPED),
  like("mix", GROUPED),
];

export const POSTGRES_RATIOS: readonly Ratio[] = [
  ratio("get/pg-ceiling", "GetProject", "get", "pg-ceiling", "processor", 0.75, 0.9),
  ratio("list25/pg-ceiling", "ListProjects of 25", "list25", "pg-ceiling", "processor", 0.75),
  ratio(
    "create20x/one-commit-each",
    "creates, 32 connections, 20 organizations",
    "create20x",
    "one-commit-each",
    "rate",
    1.3,
  ),
];

/** Searches in a million rows, in the large organization or in the others. */
export const POSTGRES_SEARCHES: readonly SearchKind[] = [
  ...SEARCH_KINDS,
  { title: "one or two rare characters", words: ["q", "qu", "z", "zz"], mostMs: 50 },
  { title: "punctuation", words: ["-", "%", "_", "%_%", ":", "--"], mostMs: 50 },
  { title: "letters outside of ASCII, absent", words: ["Ä", "äö", "größe"], mostMs: 50 },
  {
    title: "of a small organization",
    words: ["service", "zephyr", "of north", "e", "zz", "xylograph", "-", "Ä"],
    mostMs: 50,
    isOfSmallOne: true,
  },
];

function like(name: string, peers: readonly PeerName[]): Case {
  const found = CASES.find((each) => each.name === name);
  if (!found) throw new Error(`there is no case ${name}`);
  return { ...found, peers };
}
