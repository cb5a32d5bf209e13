import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandRunner } from "../process/command.ts";
import { type BubblewrapOptions, createBubblewrap, type SandboxPrograms } from "./bubblewrap.ts";
import { findExecutable, PROGRAM_FOLDERS } from "./find-executable.ts";
import { tryWork } from "./trial.ts";

type Parts = Omit<BubblewrapOptions, "folder" | "programs" | "record">;
type TrialOptions = Pick<Parts, "view" | "limits" | "groups" | "user" | "signalGroup"> & {
  readonly path: string;
  /** The folders to search for the programs that make sandboxes; the system's when absent. */
  readonly programFolders?: readonly string[];
};

/** Linux's names of processor architectures. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/**
 * Tries bubblewrap by running a command in a sandbox like work does.
 *
 * @returns the parts for making sandboxes, or why none can be made, as a message for people
 */
export async function tryBubblewrap(
  options: TrialOptions,
): Promise<{ readonly parts: Parts } | { readonly problem: string }> {
  if (platform() !== "linux") return { problem: "it needs Linux" };
  const architecture = ARCHITECTURES[arch()];
  if (architecture === undefined) return { problem: `there is no filter of system calls for ${arch()}` };
  const found = findSandboxPrograms(options.programFolders ?? PROGRAM_FOLDERS);
  if ("problem" in found) return found;
  const parts: Parts = {
    ...options,
    sandboxPrograms: found,
    filterFile: join(import.meta.dirname, "seccomp", `${architecture}.bpf`),
    inheritedDescriptors: findInheritedDescriptors(),
  };
  const folder = await mkdtemp(join(tmpdir(), "chartroom-isolation-"));
  try {
    const problem = await tryIn(folder, parts, options.path);
    return problem === undefined ? { parts } : { problem };
  } catch (error) {
    return { problem: (error as Error).message };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const PACKAGES = {
  bwrap: "bubblewrap",
  prlimit: "util-linux",
  choom: "util-linux",
  nsenter: "util-linux",
  setpriv: "util-linux",
  unshare: "util-linux",
  mount: "mount",
};

function findSandboxPrograms(folders: readonly string[]): SandboxPrograms | { readonly problem: string } {
  const found: Record<string, string> = {};
  for (const [name, packageName] of Object.entries(PACKAGES)) {
    const file = findExecutable(name, folders);
    if (file === undefined)
      return { problem: `${name} is not installed (on Debian: apt-get install ${packageName})` };
    found[name] = file;
  }
  return found as unknown as SandboxPrograms;
}

async function tryIn(folder: string, parts: Parts, path: string): Promise<string | undefined> {
  const programs = { run: createCommandRunner(parts.signalGroup), path };
  const isolation = await createBubblewrap({ ...parts, folder: join(folder, "shared"), programs });
  return tryWork(folder, isolation, programs);
}

/** O_CLOEXEC in the flags that /proc/self/fdinfo shows. */
const CLOSE_ON_EXEC = 0o2000000;

/** Returns the descriptors that every program started by this process would inherit. */
function findInheritedDescriptors(): ReadonlySet<number> {
  const isInherited = (descriptor: string) => {
    try {
      const text = readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8");
      const flags = /^flags:\s*([0-7]+)$/m.exec(text)?.[1];
      return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
    } catch {
      // The descriptor of the folder listing, which is closed by now.
      return false;
    }
  };
  return new Set(readdirSync("/proc/self/fdinfo").filter(isInherited).map(Number));
}
