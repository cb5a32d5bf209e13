import { afterAll, describe, expect, test } from "@jest/globals";
import { brokenScopes } from "../scripts/scopes.ts";
import { stopAll } from "./harness/server.ts";
import { sourceTree } from "./harness/source-tree.ts";

afterAll(stopAll);

/** Returns what is broken in a tree of these files, without the listed functions that it lacks. */
function brokenIn(files: Readonly<Record<string, string>>): string[] {
  return brokenScopes(sourceTree(files)).filter((line) => !line.endsWith("which needs no entry"));
}

describe("functions over rows", () => {
  const breachOf = (text: string) => brokenIn({ "src/store/project/project.ts": text });

  test("need a scope", () => {
    expect(breachOf("export async function findAll(db: Reader, id: string): Promise<void> {}\n")).toEqual([
      "src/store/project/project.ts: findAll takes neither a scope nor a handle, and scripts/unscoped.ts has no reason",
    ]);
    expect(breachOf("export function* findAll(\n  db: Reader,\n  id: string,\n): void {}\n")).toHaveLength(1);
    expect(breachOf("export const findAll = prepared<{ id: string }, Row>((db) => db);\n")).toHaveLength(1);
  });

  test("take a scope, a handle, or a type that has one", () => {
    expect(breachOf("export function find(db: Reader, scope: Scope): void {}\n")).toEqual([]);
    expect(breachOf('export function find(db: Reader, id: Handle<"work">): void {}\n')).toEqual([]);
    const key = 'export interface Key {\n  readonly id: Handle<"work">;\n}\n';
    const deeper = "export interface Place extends Key {\n  readonly at: number;\n}\n";
    expect(breachOf(`${key}${deeper}export function find(db: Reader, place: Place): void {}\n`)).toEqual([]);
  });

  test("need none without rows, or outside of the areas", () => {
    expect(breachOf("export function textOf(row: Row): string {}\n")).toEqual([]);
    const text = "export function find(db: Reader, id: string): void {}\n";
    expect(brokenIn({ "src/store/page.ts": text, "src/store/sqlite/open.ts": text })).toEqual([]);
  });
});

test("a listed function is only for the callers of its reason", () => {
  const files = {
    "src/store/workflow/workflow-schedule.ts": "export function findDueSchedules(db: Reader): void {}\n",
    "src/jobs/time-triggers.ts":
      'import { findDueSchedules } from "../store/workflow/workflow-schedule.ts";\n',
  };
  expect(brokenIn(files)).toEqual([]);
  const text = 'import {\n  findDueSchedules,\n} from "../../store/workflow/workflow-schedule.ts";\n';
  expect(brokenIn({ ...files, "src/services/workflow/trigger.ts": text })).toEqual([
    "src/services/workflow/trigger.ts imports findDueSchedules, which scripts/unscoped.ts keeps from it",
  ]);
});

test("a listed function that takes a scope leaves the list", () => {
  expect(brokenScopes(sourceTree({}))).toContain(
    "scripts/unscoped.ts lists findDueSchedules, which needs no entry",
  );
});

test("only store/ makes handles", () => {
  const text = 'const id = request.id as Handle<"work">;\n';
  expect(brokenIn({ "src/services/runner/claim.ts": text })).toEqual([
    "src/services/runner/claim.ts makes a handle; only store/ does, of what it found",
  ]);
  expect(brokenIn({ "src/store/runner/work.ts": text })).toEqual([]);
});
