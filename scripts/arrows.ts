import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/**
 * What each room may import: the rooms below it, and packages. A request walks
 * down; no room calls one above it.
 */
const ROOMS: Readonly<Record<string, { rooms: readonly string[]; packages: readonly RegExp[] }>> = {
  domain: { rooms: [], packages: [/^#gen\//, /^@bufbuild\/(protobuf|cel$|re2$)/, /^croner$/] },
  store: { rooms: ["domain"], packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^kysely$/] },
  "store/sqlite": {
    rooms: ["domain", "store"],
    packages: [
      /^kysely/,
      /^better-sqlite3$/,
      /^node:(fs|os|path|perf_hooks|timers.promises|worker_threads)$/,
    ],
  },
  scm: {
    rooms: ["domain"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^node:(dns|http|https|net)$/],
  },
  // A schedule starts what a request starts, by the same services.
  jobs: { rooms: ["domain", "store", "services", "scm"], packages: [/^#gen\//, /^@bufbuild\/protobuf/] },
  services: {
    rooms: ["domain", "store"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^@connectrpc\/connect$/, /^kysely$/],
  },
  rpc: {
    rooms: ["domain", "store", "services"],
    packages: [/^#gen\//, /^@bufbuild\//, /^@connectrpc\//, /^node:buffer$/],
  },
  unary: {
    rooms: ["rpc", "services"],
    packages: [/^@bufbuild\/protobuf$/, /^@connectrpc\//, /^node:/],
  },
  http: { rooms: ["unary", "rpc", "services"], packages: [/^#gen\//, /^@connectrpc\//, /^node:/] },
  runner: {
    rooms: ["domain", "scm"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^@connectrpc\//, /^node:/],
  },
};

/** Files of src/ itself that the rooms may use: the secrets and the log are handed to them by type. */
const SHARED_TYPES = new Set(["src/keys.ts", "src/log.ts"]);

/** A file stays readable while it holds one idea; the models' median is about 100 lines. */
const MOST_LINES = 300;

/** Lines that say which import breaks which rule; empty when all hold. */
export function brokenArrows(root: string): string[] {
  const broken: string[] = [];
  for (const file of sources(join(root, "src"))) {
    const name = relative(root, file).split(sep).join("/");
    const text = readFileSync(file, "utf8");
    const lines = text.split("\n").length - 1;
    if (lines > MOST_LINES)
      broken.push(`${name} has ${lines} lines; more than ${MOST_LINES} are two ideas in one`);
    if (
      name !== "src/main.ts" &&
      !name.endsWith(".test.ts") &&
      /\bprocess\.\w|from "node:process"/.test(text)
    ) {
      broken.push(`${name} touches process; only src/main.ts does`);
    }
    const room = roomOf(name);
    const rules = ROOMS[room];
    if (!rules || name.endsWith(".test.ts")) continue;
    if (room === "domain" && /Date\.now|new Date\(\)|Math\.random/.test(text)) {
      broken.push(`${name} reads a clock or chance; both are given to domain/`);
    }
    if (room !== "store/sqlite" && /\bsql`|better-sqlite3/.test(text)) {
      broken.push(`${name} writes SQL of one engine; that belongs in store/sqlite`);
    }
    for (const target of imports(text)) {
      if (!target.startsWith(".")) {
        if (!rules.packages.some((allowed) => allowed.test(target))) broken.push(`${name} imports ${target}`);
        continue;
      }
      const path = relative(root, join(dirname(file), target))
        .split(sep)
        .join("/");
      const other = roomOf(path);
      if (other !== room && !rules.rooms.includes(other) && !SHARED_TYPES.has(path)) {
        // store/ reaches its engine by name only where it asks for an expression or opens it.
        if (room === "store" && path === "src/store/sqlite/expressions.ts") continue;
        broken.push(`${name} imports ${path}: ${room}/ may not reach ${other || "src"}/`);
      }
    }
  }
  return broken;
}

function roomOf(path: string): string {
  const inside = path.replace(/^src\//, "");
  if (inside.startsWith("store/sqlite/")) return "store/sqlite";
  return inside.includes("/") ? (inside.split("/")[0] ?? "") : "";
}

function imports(text: string): string[] {
  return [...text.matchAll(/\b(?:from |import |import\()"([^"]+)"/g)].map((match) => match[1] ?? "");
}

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name));
}
