import { useEffect, useSyncExternalStore } from "react";

/** The diff renderer, once it is loaded. */
export interface Engine {
  readonly module: typeof import("./engine.ts");
  /** False when the worker for syntax colours could not be started. */
  readonly isColoured: boolean;
}

let engine: Engine | "failed" | undefined;
let loading: Promise<void> | undefined;
const listeners = new Set<() => void>();

function set(next: Engine | "failed"): void {
  engine = next;
  for (const listener of listeners) listener();
}

async function load(): Promise<void> {
  try {
    const module = await import("./engine.ts");
    await module.drawable;
    set({ module, isColoured: true });
    if (!(await module.colours)) set({ module, isColoured: false });
  } catch {
    // The next diff that is opened tries again.
    loading = undefined;
    set("failed");
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Loads the diff renderer with the first diff: undefined while loading, "failed" when it cannot be loaded. */
export function useEngine(): Engine | "failed" | undefined {
  useEffect(() => {
    if (!loading) loading = load();
  }, []);
  return useSyncExternalStore(subscribe, () => engine);
}
