import type Database from "better-sqlite3";
import { FEATURE_LEVEL, levelProblem, NewerData } from "../feature-level.ts";

/**
 * Returns the feature level of a file, which a server raises at its start: there is no other.
 * @param raises false for a command next to a server, which may be of the release before
 * @throws NewerData
 */
export function settleLevel(raw: Database.Database, raises: boolean): number {
  const level = raw.prepare<[], number>("select feature_level from installation").pluck().get() ?? 1;
  const problem = levelProblem(level);
  if (problem !== undefined) throw new NewerData(problem);
  if (!raises || level === FEATURE_LEVEL) return level;
  raw.prepare("update installation set feature_level = ?").run(FEATURE_LEVEL);
  return FEATURE_LEVEL;
}
