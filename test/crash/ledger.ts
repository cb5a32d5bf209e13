import { canonical } from "../harness/project-pages.ts";
import type { Body, State } from "./state.ts";

/**
 * Everything that the server acknowledged and must never lose. `undefined` inside a body is
 * a value that no client has received.
 */
export interface Ledger {
  readonly projects: Map<string, Body>;
  readonly environments: Map<string, Body>;
  /** Technical descriptions by project; lists omit them. */
  readonly descriptions: Map<string, string>;
}

export function createLedger(): Ledger {
  return { projects: new Map(), environments: new Map(), descriptions: new Map() };
}

/**
 * Compares the server's data with what was acknowledged.
 *
 * @throws Error that names the first difference
 */
export function compare(ledger: Ledger, state: State, descriptions: ReadonlyMap<string, string>): void {
  for (const [id, expected] of ledger.projects) {
    const found = state.projects.get(id);
    // The job may have run in between: a project marked for removal is there or gone.
    if (!found && isMarked(expected)) ledger.projects.delete(id);
    else expectSame(`project ${id}`, expected, found);
  }
  for (const [id, expected] of ledger.environments) {
    expectSame(`environment ${id}`, expected, state.environments.get(id));
  }
  for (const [id, expected] of ledger.projects) {
    // It may also have run between the state and the descriptions.
    if (!descriptions.has(id) && isMarked(expected)) continue;
    expectSame(`description of ${id}`, ledger.descriptions.get(id), descriptions.get(id));
  }
  for (const id of state.projects.keys()) expectSame(`a project ${id}`, ledger.projects.has(id), true);
  for (const id of state.environments.keys()) {
    expectSame(`an environment ${id}`, ledger.environments.has(id), true);
  }
}

/** Returns whether a value matches the expectation wherever the expectation is defined. */
export function isSame(expected: Body, found: Body): boolean {
  return found !== undefined && canonical(expected) === canonical(known(expected, found));
}

export function isMarked(project: Body): boolean {
  return project.desiredPhase === "PROJECT_PHASE_DELETED";
}

function expectSame(what: string, expected: Body, found: Body): void {
  if (isSame(expected, found)) return;
  throw new Error(`${what}\nacknowledged: ${canonical(expected)}\nfound:        ${canonical(found)}`);
}

/** Returns the value without the parts that the expectation leaves open. */
function known(expected: Body, found: Body): Body {
  if (typeof expected !== "object" || typeof found !== "object" || !expected || !found) return found;
  if (Array.isArray(expected)) return found;
  const open = Object.keys(expected).filter((name) => expected[name] === undefined);
  const rest = Object.entries(found).filter(([name]) => !open.includes(name));
  return Object.fromEntries(rest.map(([name, value]) => [name, known(expected[name], value)]));
}
