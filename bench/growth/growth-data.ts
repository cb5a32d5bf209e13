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

/** What the load needs to know; written last. */
const SEEDED = "seeded.json";

/** Ninety-five of a hundred projects are in one organization, the others in many small ones. */
export function sizesOf(projects: number): Sizes {
  const organizations = Math.min(500, projects / 100);
  return {
    projects: projects * 0.95,
    others: { organizations, projects: (projects * 0.05) / organizations },
  };
}

/** git-ignored, and gone with the packages. */
const cache = join(import.meta.dirname, "../../node_modules/.cache/bench");

/**
 * A copy, in a folder of its own, of data with so many projects. What is copied
 * is made once for the schema and the rows of the present day: a million take
 * about a minute.
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

/** Data of an earlier schema; what is still being made by another run has no facts yet, and stays. */
function removeOutdated(projects: number): void {
  mkdirSync(cache, { recursive: true });
  for (const name of readdirSync(cache)) {
    const isOutdated = name.startsWith(`${projects}-`) && existsSync(join(cache, name, SEEDED));
    if (isOutdated) rmSync(join(cache, name), { recursive: true });
  }
}

/** Changes with the schema, with the code that makes rows, and each month, since tokens end. */
function fingerprint(): string {
  const hash = createHash("sha256").update(new Date().toISOString().slice(0, 7));
  for (const { name, ...rest } of MIGRATIONS) hash.update(name).update(JSON.stringify(rest));
  const sources = join(import.meta.dirname, "../data");
  for (const file of readdirSync(sources).sort()) hash.update(readFileSync(join(sources, file)));
  return hash.digest("hex").slice(0, 12);
}
