import { v7 } from "uuid";
import type { Store } from "../../src/store/store.ts";

/**
 * Listens to a store, and leaves out the calls of all its listeners that come on PostgreSQL without a commit of this
 * process, once a second: a listener of what nobody changes is called by those alone, before any that is added later.
 */
export function listenToOwnCommits({ onChange, onCommit }: Pick<Store, "onChange" | "onCommit">) {
  let isOfAll = false;
  let commits = 0;
  onCommit(() => {
    commits += 1;
  });
  onChange(v7(), () => {
    commits -= 1;
    isOfAll = true;
    queueMicrotask(() => {
      isOfAll = false;
    });
  });
  return {
    /** Returns how many commits there have been. */
    commits: () => commits,
    /** Calls `listener` after each commit that changes a resource; returns what ends it. */
    onChange: (id: string, listener: () => void): (() => void) =>
      onChange(id, () => {
        if (!isOfAll) listener();
      }),
  };
}
