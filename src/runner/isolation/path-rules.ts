/** The rules about files that hold in a sandbox, by their paths. */
export interface PathRules {
  /** Programs that may not be started: a name is every program of that name, an absolute path one file. */
  readonly executables: readonly string[];
  /** Absolute paths that may not be used at all. */
  readonly denied: readonly string[];
  /** Absolute paths whose content may not be changed. */
  readonly readOnly: readonly string[];
}

export const NO_RULES: PathRules = { executables: [], denied: [], readOnly: [] };

/** Returns whether rules deny nothing. */
export function isEmpty({ executables, denied, readOnly }: PathRules): boolean {
  return executables.length + denied.length + readOnly.length === 0;
}
