import { type BareRepository, bareRepository } from "./git-repository.ts";
import type { ScmHost } from "./scm-host.ts";
import { temporaryFolder } from "./server.ts";

/** A real repository on disk, and the URL that runners clone it from. */
export interface ServedRepository extends BareRepository {
  /** Such as `r7`; also the text of its file name.txt. */
  readonly name: string;
  /** Its path at the host, as in `team/r7`; empty without a host. */
  readonly path: string;
  readonly cloneUrl: string;
}

/**
 * Creates one repository for each name, with an a.txt of as many lines as its position in the list,
 * from 1.
 *
 * @param host serves them over HTTP; without one they are local folders
 */
export function serveRepositories(names: readonly string[], host?: ScmHost): ServedRepository[] {
  const folder = temporaryFolder();
  return names.map((name, index) => {
    const files = { "name.txt": name, "a.txt": "line\n".repeat(index + 1) };
    const repository = bareRepository(folder, files, `${name}.git`);
    const path = host ? `team/${name}` : "";
    const cloneUrl = host ? host.addRepository(path, repository.folder) : repository.url;
    return { ...repository, name, path, cloneUrl };
  });
}
