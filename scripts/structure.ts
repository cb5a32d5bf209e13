/** Prints how the tree is laid out: `node scripts/structure.ts`. Numbers to compare between commits; no check of its own. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { unscopedCount } from "./scopes.ts";
import { riddles } from "./words.ts";

const root = join(import.meta.dirname, "..");
const SMALL_LINES = 60;

/** Names and words that docs and code left for the field's terms; `answerJson` and `answerRequest` are names of the contract. */
const OLD_WORDS =
  /\b(refuse[A-Z]\w*|answer(?!Json|Request)[A-Z]\w*|MOST_\w+|LONGEST_\w+|\w+_A_(?:RUN|TURN|BATCH|READ)|tally\w*|whoever|anew|standing)\b/;

interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  readonly imports: readonly string[];
}

const sources: Source[] = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => {
    const file = join(entry.parentPath, entry.name);
    const text = readFileSync(file, "utf8");
    const imports = [...text.matchAll(/"(\.{1,2}\/[^"]+\.ts)"/g)].map(([, target = ""]) =>
      relative(root, join(dirname(file), target)),
    );
    return { path: relative(root, file), text, lines: text.split("\n").length - 1, imports };
  });
const own = sources.filter(({ path }) => !path.endsWith(".test.ts"));

const importers = new Map<string, Source[]>();
for (const source of own) {
  for (const target of new Set(source.imports)) {
    importers.set(target, [...(importers.get(target) ?? []), source]);
  }
}
const importedLater = new Set(
  own.flatMap(({ path, text }) =>
    [...text.matchAll(/import\("(\.{1,2}\/[^"]+\.ts)"\)/g)].map(([, target = ""]) =>
      join(dirname(path), target),
    ),
  ),
);
const perFolder = Map.groupBy(sources, ({ path }) => dirname(path));
const counts = [...perFolder.values()].map(({ length }) => length).sort((a, b) => a - b);
const withOne = own.filter(({ path }) => importers.get(path)?.length === 1);
// A job and a migration are files by themselves, a worker is started by its name, and the folder's list imports each; a
// file that is imported when it is needed has to be one.
const fragments = withOne.filter(({ path, lines }) => {
  const [importer] = importers.get(path) ?? [];
  const isOfFolder = importer !== undefined && dirname(importer.path) === dirname(path);
  return (
    lines <= SMALL_LINES &&
    isOfFolder &&
    !/^src\/jobs\/|\/migrations\/|-worker\.ts$/.test(path) &&
    !importedLater.has(path)
  );
});
const docstrings = own.flatMap(({ text }) => [...text.matchAll(/\/\*\*\s*\n?\s*\*?\s*(\w+)/g)]);
const starting = (word: RegExp) => docstrings.filter(([, first = ""]) => word.test(first)).length;
const oldWords = own.reduce(
  (sum, { text }) => sum + [...text.matchAll(new RegExp(OLD_WORDS, "g"))].length,
  0,
);

/** Counts what Node loads before the server's first line, which it prints once it is ready; then ends it. */
const COUNT_MODULES = `
import { registerHooks } from "node:module";
let count = 0;
registerHooks({ load: (url, context, next) => { count += 1; return next(url, context); } });
const { stdout } = process;
stdout.write = () => { process.stderr.write(String(count)); process.exit(); };`;

const dataDir = mkdtempSync(join(tmpdir(), "structure-"));
const loaded = spawnSync(
  process.execPath,
  [
    ...[
      "--import",
      `data:text/javascript,${encodeURIComponent(COUNT_MODULES)}`,
      join(root, "bin/chartroom.js"),
    ],
    ...[
      "serve",
      "--port",
      "0",
      "--metrics-address",
      "127.0.0.1:0",
      "--log-level",
      "error",
      "--data-dir",
      dataDir,
    ],
  ],
  { encoding: "utf8" },
);
rmSync(dataDir, { recursive: true });

const rows: [string, string | number][] = [
  ["files of src without tests", own.length],
  ["folders of src", perFolder.size],
  ["files a folder, median and most", `${counts[Math.floor(counts.length / 2)]}, ${counts.at(-1)}`],
  ["longest file, lines", Math.max(...own.map(({ lines }) => lines))],
  ["files with one importer", withOne.length],
  [`of them fragments: at most ${SMALL_LINES} lines, importer in the same folder`, fragments.length],
  ["docstrings", docstrings.length],
  ["docstrings that begin with What, Whether, Who, How or Where", starting(/^(What|Whether|Who|How|Where)$/)],
  ["names and words that were replaced by the field's", oldWords],
  ["words with a plainer one, such as beside and is told, in pages and comments", riddles(root).length],
  ["functions over rows that take neither a scope nor a handle", unscopedCount()],
  ["modules that a first start of the server loads, until it is ready", loaded.stderr],
];
for (const [name, value] of rows) process.stdout.write(`${String(value).padStart(8)}  ${name}\n`);
if (process.argv.includes("--fragments")) {
  for (const { path, lines } of fragments) process.stdout.write(`${path} (${lines} lines)\n`);
}
