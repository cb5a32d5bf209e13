import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createContainers } from "../../src/runner/isolation/container/container.ts";
import { tryContainers } from "../../src/runner/isolation/container/container-trial.ts";
import { engineEnvironment, runEngine } from "../../src/runner/isolation/container/engine.ts";
import { findExecutable, PROGRAM_FOLDERS } from "../../src/runner/isolation/find-executable.ts";
import type { Isolation } from "../../src/runner/isolation/isolation.ts";
import { readSystemView } from "../../src/runner/isolation/system-view.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { temporaryFolder } from "../harness/server.ts";
import { isRoot, LIMITS, signalGroup } from "../isolation/sandboxes.ts";

/** An image of these tests, which no registry has: folders and links, into which the machine's programs are mounted. */
const IMAGE = "localhost/chartroom-escape-test:1";
const LINKS = ["bin", "lib", "lib64", "sbin"];
const FOLDERS = ["dev", "etc", "proc", "run", "sys", "tmp", "var/tmp", ...LINKS.map((each) => `usr/${each}`)];
/** The user of the work where these tests run as root; another than that of sandboxes, whose processes would count. */
export const CONTAINER_USER = isRoot ? 64_914 : undefined;

/**
 * Returns the class as a runner has it, in which work sees the programs of this machine.
 *
 * @param hidden files and folders that no work may see
 * @throws Error where no engine works here
 */
export async function containers(hidden: readonly string[] = []): Promise<Isolation> {
  await importImage();
  const { path } = realPrograms;
  const tried = await tryContainers({
    view: readSystemView({ readable: ["/usr"], hidden }),
    limits: LIMITS,
    groups: undefined,
    trialGroups: undefined,
    user: CONTAINER_USER,
    isRoot,
    signalGroup,
    path,
    env: process.env,
    programFolders: PROGRAM_FOLDERS,
    image: IMAGE,
    repositoryImages: { allowed: [], cli: "", most: 1 },
  });
  if ("problem" in tried) throw new Error(`containers do not work here: ${tried.problem}`);
  return createContainers({ ...tried.parts, programs: realPrograms });
}

/** Gives the image to every engine that is there. */
async function importImage(): Promise<void> {
  const root = temporaryFolder();
  for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true });
  for (const link of LINKS) symlinkSync(`usr/${link}`, join(root, link));
  const archive = join(temporaryFolder(), "image.tar");
  execFileSync("tar", ["--create", `--file=${archive}`, `--directory=${root}`, "."]);
  for (const engine of engines()) await runEngine(engine, ["import", archive, IMAGE]);
}

/** The engines that are there, as a runner starts them. */
function engines() {
  return ["podman", "docker"].flatMap((name) => {
    const file = findExecutable(name, PROGRAM_FOLDERS);
    return file === undefined ? [] : [{ file, environment: engineEnvironment(process.env) }];
  });
}

/** Returns what the engines say of all containers of runners. */
export async function listContainers(): Promise<string> {
  const list = ["ps", "--all", "--quiet", "--filter=label=chartroom.runner"];
  return (await Promise.all(engines().map(async (each) => (await runEngine(each, list)).text)))
    .join("\n")
    .trim();
}
