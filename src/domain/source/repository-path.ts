import { remoteForms } from "./remote.ts";

const REMOTE_OF_HOST = /^(?:https?|ssh|git):\/\/[^/?#]+\/+([^?#]*)/i;
/** Characters that hosts allow in names. Segments `.` and `..` are excluded, since they would leave the API's path. */
const REPOSITORY = /^(?!\.{1,2}(?:\/|$))[\w.-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/;

/**
 * Returns the repository of a remote, as its host's API names it: `owner/name`,
 * or `group/subgroup/name`. Undefined for a remote that names none, such as a
 * folder or a path with one segment.
 */
export function repositoryPath(remote: string): string | undefined {
  const path = REMOTE_OF_HOST.exec(remoteForms(remote).at(-1) ?? "")?.[1] ?? "";
  const repository = path.replace(/\/+$/, "").replace(/\.git$/, "");
  return isRepositoryPath(repository) ? repository : undefined;
}

/** Returns whether a text can be a repository's path in a URL. */
export function isRepositoryPath(text: string): boolean {
  return text.length <= 1_024 && REPOSITORY.test(text);
}
