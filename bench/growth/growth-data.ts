import { createHash } from "node:crypto";
import {
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { MIGRATIONS } from "../../src/store/sqlite/migrate.ts";
import { type Seeded, type Sizes, seed } from "../data/seed.ts";

/** The file with the facts that the load needs. It is written last. */
const SEEDED = "seeded.json";

/** Returns sizes with 95 % of the projects in one organization and the rest in many small ones. */
export function sizesOf(projects: number): Sizes {
  const organizations = Math.min(500, projects / 100);
  return {
    projects: projects * 0.95,
    others: { organizations, projects: (projects * 0.05) / organizations },
  };
}

/** The cache, which git ignores. It is removed with node_modules. */
const cache = join(import.meta.dirname, "../../node_modules/.cache/bench");

/**
 * Copies data with a number of projects to `folder`. The original is cached for the current schema and rows; a million
 * projects take about a minute to create.
 */
export async function growthData(projects: number, folder: string): Promise<Seeded> {
  const made = join(cache, `${projects}-${fingerprint()}`);
  const facts = join(made, SEEDED);
  if (!existsSync(facts)) {
    removeOutdated(projects);
    const draft = `${made}-${process.pid}`;
    mkdirSync(draft, { recursive: true });
    const seeded = await seed(draft, sizesOf(projects));
    writeFileSync(join(draft, SEEDED), JSON.stringify(seeded));
    renameSync(draft, made);
  }
  cpSync(made, folder, { recursive: true, mode: constants.COPYFILE_FICLONE });
  return { ...(JSON.parse(readFileSync(facts, "utf8")) as Seeded), dataDir: folder };
}

/** Removes data of an earlier schema, but not data that another run is still creating: it has no facts file yet. */
function removeOutdated(projects: number): void {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const isOutdated = name.startsWith(`${projects}-`) && existsSync(join(cache, name, SEEDED));
    if (isOutdated) rmSync(join(cache, name), { recursive: true });
  }
}

/** Returns a hash of the schema, the code that creates rows, and the month, since tokens expire. */
function fingerprint(): string {
  const hash = createHash("sha256").update(new Date().toISOString().slice(0, 7));
  for (const { name, ...rest } of MIGRATIONS) hash.update(name).update(JSON.stringify(rest));
  const sources = join(import.meta.dirname, "../data");
  for (const file of readdirSync(sources).sort()) hash.update(readFileSync(join(sources, file)));
  return hash.digest("hex").slice(0, 12);
}
