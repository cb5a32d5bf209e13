import {
  type DiffBase,
  type EnvironmentFileDiff,
  EnvironmentFileDiffSchema,
} from "#gen/service/v1/environment_changes_pb.js";
import type { DiffFile, PresentDiffs } from "../../../domain/agent/review/comment-place.ts";
import {
  type DiffText,
  findChanges,
  findDiffTexts,
  type StoredChanges,
} from "../../../store/environment/environment-changes.ts";
import { fromBody } from "../../../store/json.ts";
import type { Reader, Scope } from "../../../store/store.ts";

/** The stored diffs of an environment, and the folder in which its agents work. */
export interface EnvironmentDiffs extends PresentDiffs {
  /** The agents' working folder, relative to the environment: the folder of the first repository. */
  readonly folder: string;
}

/** Returns the stored diffs of an environment; none if nothing was reported. */
export async function findPresentDiffs(
  db: Reader,
  scope: Scope,
  environmentId: string,
): Promise<EnvironmentDiffs> {
  const changes = await findChanges(db, scope, environmentId);
  return new StoredDiffs(changes, changes ? await findDiffTexts(db, scope, environmentId) : []);
}

/** The beginning of the JSON of an EnvironmentFileDiff, whose canonical form has a fixed order of fields. */
const HEAD = /^\{"path":("(?:[^"\\]|\\.)*"),"oldPath":("(?:[^"\\]|\\.)*"),"kind":"(\w+)"/;

/** Files of diffs. A file is parsed when a comment refers to it. */
class StoredDiffs implements EnvironmentDiffs {
  readonly folder: string;
  readonly #changes: StoredChanges | undefined;
  readonly #byName = new Map<string, DiffText[]>();
  readonly #added: DiffText[] = [];
  readonly #parsed = new Map<DiffText, DiffFile>();

  constructor(changes: StoredChanges | undefined, texts: readonly DiffText[]) {
    this.#changes = changes;
    this.folder = changes?.changes.repositories[0]?.folder ?? "";
    for (const text of texts) {
      const [, path = '""', oldPath = '""', kind] = HEAD.exec(text.body) ?? [];
      for (const name of new Set<string>([JSON.parse(path), JSON.parse(oldPath)])) {
        if (name === "") continue;
        const named = this.#byName.get(name);
        if (named) named.push(text);
        else this.#byName.set(name, [text]);
      }
      if (kind === "KIND_ADDED") this.#added.push(text);
    }
  }

  digestOf(base: DiffBase): string | undefined {
    return this.#changes?.diffs.find((diff) => diff.base === base)?.digest;
  }

  filesNamed(paths: ReadonlySet<string>): readonly DiffFile[] {
    const texts = new Set([...paths].flatMap((path) => this.#byName.get(path) ?? []));
    return [...texts].map((text) => this.#fileOf(text));
  }

  addedFiles(): readonly DiffFile[] {
    return this.#added.map((text) => this.#fileOf(text));
  }

  #fileOf(text: DiffText): DiffFile {
    let known = this.#parsed.get(text);
    if (!known) {
      const file: EnvironmentFileDiff = fromBody(EnvironmentFileDiffSchema, text.body);
      known = { base: text.base, file };
      this.#parsed.set(text, known);
    }
    return known;
  }
}
