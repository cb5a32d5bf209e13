import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

/**
 * What each layer may import: layers below it, and packages. A request goes down
 * the layers; none calls one above it.
 */
const LAYERS: Readonly<Record<string, { layers: readonly string[]; packages: readonly RegExp[] }>> = {
  domain: { layers: [], packages: [/^#gen\//, /^@bufbuild\/(protobuf|cel$|re2$)/, /^croner$/] },
  store: {
    layers: ["domain"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^kysely$/, /^node:(crypto|zlib)$/],
  },
  "store/sqlite": {
    layers: ["domain", "store"],
    packages: [
      /^kysely/,
      /^better-sqlite3$/,
      /^node:(fs|os|path|perf_hooks|timers.promises|worker_threads)$/,
    ],
  },
  "store/postgres": {
    layers: ["domain", "store"],
    packages: [/^kysely/, /^pg$/, /^node:(crypto|fs|perf_hooks)$/],
  },
  scm: {
    layers: ["domain"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^node:(dns|http|https|net)$/],
  },
  // Sign-in providers and the issuers of machines' tokens.
  openid: { layers: ["domain", "scm"], packages: [/^openid-client$/, /^jose$/] },
  // What is measured of any part is handed in; the store alone is asked.
  metrics: {
    layers: ["domain", "store"],
    packages: [/^#gen\//, /^@opentelemetry\//, /^node:(http|net|perf_hooks|v8)$/],
  },
  // Spans are built from rows, when what they are of has ended.
  tracing: {
    layers: ["domain", "store", "metrics"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^@opentelemetry\//],
  },
  // Where the audit trail is exported to, and events are sent; what goes there is handed in.
  sinks: {
    layers: ["domain", "scm"],
    packages: [/^#gen\//, /^node:(fs.promises|path)$/, /^standardwebhooks$/],
  },
  // A schedule starts what a request starts, by the same services.
  jobs: { layers: ["domain", "store", "services", "scm"], packages: [/^#gen\//, /^@bufbuild\/protobuf/] },
  services: {
    layers: ["domain", "store"],
    packages: [/^#gen\//, /^@bufbuild\/protobuf/, /^@connectrpc\/connect$/],
  },
  rpc: {
    layers: ["domain", "store", "services"],
    packages: [/^#gen\//, /^@bufbuild\//, /^@connectrpc\//, /^node:(async_hooks|buffer)$/],
  },
  unary: {
    layers: ["rpc", "services"],
    packages: [/^@bufbuild\/protobuf$/, /^@connectrpc\//, /^node:/],
  },
  http: {
    layers: ["unary", "rpc", "services", "tracing"],
    packages: [/^#gen\//, /^@connectrpc\//, /^@modelcontextprotocol\/server$/, /^node:/],
  },
  runner: {
    layers: ["domain", "scm"],
    packages: [
      /^#gen\//,
      /^@bufbuild\/protobuf/,
      /^@connectrpc\//,
      /^@agentclientprotocol\/sdk$/,
      /^diff$/,
      /^(asn1js|pkijs)$/,
      /^node:/,
    ],
  },
};

/** Files of src/ itself that the layers may use: the secrets and the log are handed to them by type. */
const SHARED_TYPES = new Set(["src/keys.ts", "src/log.ts"]);

/**
 * The areas in which domain, store and services are divided, each of which may use those
 * before it. What lies in none of them is below all.
 */
const AREAS = [
  "identity",
  "record",
  "policy",
  "runner",
  "project",
  "environment",
  "approval",
  "workflow",
  "agent",
  "access",
];

/** Folders next to the areas, and how far up the areas they may reach: all areas may use them. */
const BASES: Readonly<Record<string, string | undefined>> = {
  "domain/source": undefined,
  // A call has a caller, and an idempotency key.
  "services/call": "record",
};

/** Files that unite what the areas hold. */
const UNITING = new Set([
  "src/store/schema.ts",
  "src/store/search-index.ts",
  "src/store/group.ts",
  "src/store/run-write.ts",
]);

/** The layers that know an engine. */
const ENGINES: ReadonlySet<string> = new Set(["store/sqlite", "store/postgres"]);

/** Files next to the engines with SQL: that of both, each expression in the form of either. */
const SQL_OF_BOTH = new Set([
  "src/store/expressions.ts",
  "src/store/owned-rows.ts",
  "src/store/access/retention/ended.ts",
  "src/store/access/retention/parts.ts",
]);

/** What only store/ imports: with it, queries can be built. */
const STORE_ONLY = /^src\/store\/(query-builder|prepared|(.*\/)?[a-z-]*schema)\.ts$/;

/** The errors of rules, which only domain/ makes: services throw what a look-up finds missing, and no more. */
const RULE_ERRORS =
  /\bnew (?:DomainError|PolicyDenied)\(|\bthrow (?:valueUnusable|phaseUnsuitable|permissionDenied|policyDenied|pendingDeletion|inUse|executorUnfit|lastAdministrator|notEnterprise|queueFull|queueChanged|credentialWithheld)\(/;

/** How SQLite indexes texts: behind SearchIndex, each engine has a way of its own. Only a schema names its tables. */
const TEXT_INDEX = /trigram|\browid\b|enterText|\bgrams\b|candidateSource/i;

/** Files of one folder, tests among them, without those of folders in it. */
const MAX_FILES = 25;

/** A file stays readable while it holds one idea; the models' median is about 100 lines. */
const MAX_LINES = 300;

/** Returns a line for each breach of the rules; empty when all hold. */
export function brokenRules(root: string): string[] {
  const broken: string[] = [];
  for (const file of sources(join(root, "src"))) {
    const name = relative(root, file).split(sep).join("/");
    const text = readFileSync(file, "utf8");
    const lines = text.split("\n").length - 1;
    if (lines > MAX_LINES)
      broken.push(`${name} has ${lines} lines; more than ${MAX_LINES} are two ideas in one`);
    if (
      name !== "src/main.ts" &&
      !name.endsWith(".test.ts") &&
      /(?<!")\bprocess\.\w|from "node:process"/.test(text)
    ) {
      broken.push(`${name} touches process; only src/main.ts does`);
    }
    const layer = layerOf(name);
    const rules = LAYERS[layer];
    if (!rules || name.endsWith(".test.ts")) continue;
    if (layer === "domain" && /Date\.now|new Date\(\)|Math\.random/.test(text)) {
      broken.push(`${name} reads a clock or randomness; both are given to domain/`);
    }
    if (!ENGINES.has(layer) && !SQL_OF_BOTH.has(name) && /\bsql`|better-sqlite3/.test(text)) {
      broken.push(`${name} writes SQL of one engine; that belongs in store/sqlite`);
    }
    if (!ENGINES.has(layer) && !name.endsWith("-schema.ts") && TEXT_INDEX.test(text)) {
      broken.push(`${name} names how the engine indexes texts; that belongs in store/sqlite`);
    }
    if (layer === "services" && RULE_ERRORS.test(text)) {
      broken.push(`${name} throws the error of a rule; rules are functions of domain/`);
    }
    const reach = UNITING.has(name) ? AREAS.length : reachOf(name);
    for (const target of imports(text)) {
      if (!target.startsWith(".")) {
        if (!rules.packages.some((allowed) => allowed.test(target))) broken.push(`${name} imports ${target}`);
        continue;
      }
      const path = relative(root, join(dirname(file), target))
        .split(sep)
        .join("/");
      const other = layerOf(path);
      if (other !== layer && !rules.layers.includes(other) && !SHARED_TYPES.has(path)) {
        broken.push(`${name} imports ${path}: ${layer}/ may not reach ${other || "src"}/`);
      }
      if (STORE_ONLY.test(path) && !layer.startsWith("store")) {
        broken.push(`${name} imports ${path}: only store/ builds queries`);
      }
      if (areaOf(path) > reach) {
        broken.push(`${name} imports ${path}: the area ${AREAS[areaOf(path)]} comes later`);
      }
    }
  }
  broken.push(...tooLong(root, "console/src"));
  for (const [folder, count] of [...filesPerFolder(root, "src"), ...filesPerFolder(root, "console/src")]) {
    if (count > MAX_FILES)
      broken.push(`${folder} has ${count} files; more than ${MAX_FILES} hide their order`);
  }
  return broken;
}

/** Returns the place of a path's area in the order of areas; -1 for what all areas may use. */
function areaOf(path: string): number {
  const [, layer = "", folder = ""] = path.split("/");
  return ["domain", "store", "services"].includes(layer) ? AREAS.indexOf(folder) : -1;
}

/** Returns the place of the last area that a file may import. */
function reachOf(path: string): number {
  const [, layer = "", folder = ""] = path.split("/");
  const base = `${layer}/${folder}`;
  if (base in BASES) return AREAS.indexOf(BASES[base] ?? "");
  if (ENGINES.has(base) || !["domain", "store", "services"].includes(layer)) return AREAS.length;
  return areaOf(path);
}

/** Returns a line for each file of a folder that is too long. */
function tooLong(root: string, part: string): string[] {
  return sources(join(root, part)).flatMap((file) => {
    const lines = readFileSync(file, "utf8").split("\n").length - 1;
    if (lines <= MAX_LINES) return [];
    return [`${relative(root, file)} has ${lines} lines; more than ${MAX_LINES} are two ideas in one`];
  });
}

function filesPerFolder(root: string, part: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const file of sources(join(root, part))) {
    const folder = relative(root, dirname(file)).split(sep).join("/");
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return counts;
}

function layerOf(path: string): string {
  const inside = path.replace(/^src\//, "");
  const engine = [...ENGINES].find((each) => inside.startsWith(`${each}/`));
  if (engine) return engine;
  return inside.includes("/") ? (inside.split("/")[0] ?? "") : "";
}

function imports(text: string): string[] {
  return [...text.matchAll(/\b(?:from |import |import\()"([^"]+)"/g)].map((match) => match[1] ?? "");
}

function sources(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
