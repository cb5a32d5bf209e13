import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { UNSCOPED } from "./unscoped.ts";

/** The types of parameters by which a function of store/ touches rows. */
const ROWS = /\b(?:Reader|WriteTransaction)\b|\bStore\b/;

/** The types that prove what a caller may see: {@link Scope} and {@link Handle} of src/store/store.ts. */
const PROOF = /\bScope\b|\bHandle</;

/** Types whose methods take a scope, and which are no proof of one. */
const NO_PROOF: ReadonlySet<string> = new Set([
  "Store",
  "Reader",
  "WriteTransaction",
  "SearchIndex",
  "ProjectSearch",
]);

interface Source {
  readonly path: string;
  readonly text: string;
}

/** Returns a line for each function over rows that takes no scope, and is not listed, or is listed wrongly. */
export function brokenScopes(root: string): string[] {
  const broken: string[] = [];
  const sources = readSources(root);
  const proofs = typesWithProof(sources);
  const reasons = new Map(
    UNSCOPED.flatMap(({ functions, callers }) => Object.keys(functions).map((name) => [name, callers])),
  );
  const found = new Set<string>();
  for (const { path, text } of sources.filter((source) => isArea(source.path))) {
    for (const { name, parameters } of functionsOf(text)) {
      if (!ROWS.test(parameters) || isProven(parameters, proofs)) continue;
      found.add(name);
      if (!reasons.has(name)) {
        broken.push(
          `${path}: ${name} takes neither a scope nor a handle, and scripts/unscoped.ts has no reason`,
        );
        continue;
      }
      const callers = reasons.get(name);
      for (const other of callers ? sources : []) {
        const isAllowed = other.path === path || callers?.test(other.path);
        if (!isAllowed && importedNames(other.text).has(name)) {
          broken.push(`${other.path} imports ${name}, which scripts/unscoped.ts keeps from it`);
        }
      }
    }
  }
  for (const name of reasons.keys()) {
    if (!found.has(name)) broken.push(`scripts/unscoped.ts lists ${name}, which needs no entry`);
  }
  for (const { path, text } of sources) {
    if (!path.startsWith("src/store/") && makesProof(text, proofs)) {
      broken.push(`${path} makes a handle; only store/ does, of what it found`);
    }
  }
  return broken;
}

/** Returns the number of listed functions. */
export function unscopedCount(): number {
  return UNSCOPED.reduce((sum, { functions }) => sum + Object.keys(functions).length, 0);
}

function readSources(root: string): Source[] {
  return readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => ({
      path: relative(root, file).split(sep).join("/"),
      text: readFileSync(file, "utf8"),
    }));
}

/** Returns whether a file holds rows of an area: store/ itself has none, and the engine no tenants. */
function isArea(path: string): boolean {
  return /^src\/store\/(?!sqlite\/)[^/]+\//.test(path);
}

/** Returns the exported functions of a file, each with the text of its parameters. */
function functionsOf(text: string): { name: string; parameters: string }[] {
  const functions = [...text.matchAll(/^export (?:async )?function\*? (\w+)[^(]*/gm)].map((match) => {
    const start = match.index + match[0].length;
    return { name: match[1] ?? "", parameters: text.slice(start, closing(text, start)) };
  });
  // A prepared query takes a reader, and what it is given is between angle brackets.
  const queries = [...text.matchAll(/^export const (\w+) = prepared<([^>]*)/gm)].map((match) => ({
    name: match[1] ?? "",
    parameters: `Reader ${match[2]}`,
  }));
  return [...functions, ...queries];
}

/** Returns the place after the bracket that closes the one at `start`. */
function closing(text: string, start: number): number {
  let depth = 0;
  for (let place = start; place < text.length; place += 1) {
    if (text[place] === "(") depth += 1;
    if (text[place] === ")") depth -= 1;
    if (depth === 0) return place + 1;
  }
  return text.length;
}

/** Returns the names of the types of store/ that contain a scope or a handle. */
function typesWithProof(sources: readonly Source[]): ReadonlySet<string> {
  const declarations = sources
    .filter(({ path }) => path.startsWith("src/store/"))
    .flatMap(({ text }) => [
      ...text
        .replace(/\/\*[\s\S]*?\*\//g, "")
        .matchAll(/^export (?:interface|type) (\w+)([^;]*?;\n(?=\n|$)|[\s\S]*?^\})/gm),
    ])
    .map(([, name = "", body = ""]) => ({ name, body }));
  const proofs = new Set<string>();
  for (let before = -1; before < proofs.size; ) {
    before = proofs.size;
    for (const { name, body } of declarations)
      if (!NO_PROOF.has(name) && isProven(body, proofs)) proofs.add(name);
  }
  return proofs;
}

function isProven(text: string, proofs: ReadonlySet<string>): boolean {
  return PROOF.test(text) || [...text.matchAll(/\b[A-Z]\w+/g)].some(([name]) => proofs.has(name));
}

/** Returns whether a file asserts that something is a handle or has one. */
function makesProof(text: string, proofs: ReadonlySet<string>): boolean {
  return [...text.matchAll(/\bas (?:unknown as )?([A-Z]\w*<?)/g)].some(([, type = ""]) =>
    isProven(type, proofs),
  );
}

function importedNames(text: string): ReadonlySet<string> {
  const lists = [...text.matchAll(/^import (?:type )?\{([^}]*)\} from "\./gm)];
  return new Set(lists.flatMap(([, list = ""]) => list.match(/\w+/g) ?? []));
}
