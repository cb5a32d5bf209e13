/** The rules about files in a sandbox. */
export interface PathRules {
  /** Programs that may not start. A name means every program of that name; an absolute path means one file. */
  readonly executables: readonly string[];
  /** Absolute paths that may not be used. */
  readonly denied: readonly string[];
  /** Absolute paths whose content may not be changed. */
  readonly readOnly: readonly string[];
}

export const NO_RULES: PathRules = { executables: [], denied: [], readOnly: [] };

/** Returns whether rules deny nothing. */
export function isEmpty({ executables, denied, readOnly }: PathRules): boolean {
  return executables.length + denied.length + readOnly.length === 0;
}
