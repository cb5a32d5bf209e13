import { ABSENT_WORD, COMMON_WORD, ELSEWHERE_WORD, RARE_WORD } from "../data/project-rows.ts";
import type { LoadRequest } from "../load/task.ts";

/** A kind of search, with a few examples. */
export interface SearchKind {
  readonly title: string;
  readonly words: readonly string[];
  /** Upper bound on the p99, in milliseconds: 15 if fewer than a thousand projects match. */
  readonly mostMs: number;
  /** True if the second page is requested as well. */
  readonly isDeep?: boolean;
  /** The order of the results; by popularity when absent. */
  readonly order?: "id";
  /** True if the caller is a member of a small organization, which has some dozens of projects. */
  readonly isOfSmallOne?: boolean;
}

const TEAMS = ["north", "south", "east", "west"];

/** Searches in the large organization. */
export const SEARCH_KINDS: readonly SearchKind[] = [
  { title: "no match", words: [ABSENT_WORD, "9f8e7d6c5b", "no such thing", "%_%", "zz"], mostMs: 15 },
  { title: "under 1,000 matches", words: [RARE_WORD, `${RARE_WORD} ${COMMON_WORD}`, "qu", "q"], mostMs: 15 },
  { title: "a few matches", words: ["of harbour 1390", "gateway-700", "north 2100"], mostMs: 15 },
  {
    title: "a common term, by popularity",
    words: [COMMON_WORD, ...TEAMS.map((team) => `${COMMON_WORD} of ${team}`), "-"],
    mostMs: 50,
    isDeep: true,
  },
  { title: "a common term, by id", words: [COMMON_WORD, "library", "worker"], mostMs: 50, order: "id" },
  {
    title: "common elsewhere, absent here",
    words: [ELSEWHERE_WORD, `${ELSEWHERE_WORD} of north`, `billing ${ELSEWHERE_WORD}`],
    mostMs: 15,
  },
  { title: "one or two common characters", words: ["of", "77", "e", "7"], mostMs: 50 },
];

export function searchRequests({ words, order }: SearchKind, token = ""): LoadRequest[] {
  return words.map((search) => ({
    operation: "ProjectService/ListProjects",
    body: JSON.stringify({
      filter: { search },
      pagination: { pageSize: 25, token },
      ...(order && { sort: { field: order } }),
    }),
  }));
}
