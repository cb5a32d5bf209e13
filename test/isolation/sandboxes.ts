import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { WorkNetwork } from "../../src/runner/egress/work-network.ts";
import { type BubblewrapOptions, createBubblewrap } from "../../src/runner/isolation/bubblewrap.ts";
import { tryBubblewrap } from "../../src/runner/isolation/bubblewrap-trial.ts";
import { type Isolation, noIsolation } from "../../src/runner/isolation/isolation.ts";
import type { PathRules } from "../../src/runner/isolation/path-rules.ts";
import { readSystemView } from "../../src/runner/isolation/system-view.ts";
import { commandEnvironment, type RunCommand } from "../../src/runner/process/command.ts";
import { type Workspace, workspaceAt } from "../../src/runner/steps/workspace.ts";
import { realPrograms } from "../harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const MIB = 2 ** 20;
export const signalGroup = (groupId: number, signal: NodeJS.Signals | 0) =>
  void process.kill(-groupId, signal);
export const isRoot = process.getuid?.() === 0;
/** The user of the work where these tests run as root. */
export const WORK_USER = isRoot ? 64_913 : undefined;

export const LIMITS = {
  processes: 200,
  memoryBytes: 512 * MIB,
  processors: 0,
  diskBytes: 64 * 1024 * MIB,
  tmpBytes: 64 * 1024 * MIB,
  freeDiskBytes: 0,
};

/** A program of the kernel's filter that allows every system call. */
const ALLOW_ALL = Buffer.from([0x06, 0, 0, 0, 0, 0, 0xff, 0x7f]);

export interface SandboxOptions {
  readonly limits?: Partial<BubblewrapOptions["limits"]>;
  readonly readable?: readonly string[];
  readonly hidden?: readonly string[];
  readonly isFiltered?: boolean;
  readonly groups?: BubblewrapOptions["groups"];
}

/** Returns the class as a runner has it. */
export async function bubblewrap(options: SandboxOptions = {}): Promise<Isolation> {
  const { limits, readable = [], hidden = [], isFiltered = true, groups } = options;
  const folder = temporaryFolder();
  const { path } = realPrograms;
  const tried = await tryBubblewrap({
    view: readSystemView({ readable, hidden }),
    limits: { ...LIMITS, ...limits },
    groups,
    user: WORK_USER,
    signalGroup,
    path,
  });
  if ("problem" in tried) throw new Error(`bubblewrap does not work here: ${tried.problem}`);
  const filterFile = join(folder, "allow-all.bpf");
  writeFileSync(filterFile, ALLOW_ALL);
  return createBubblewrap({
    ...tried.parts,
    ...(!isFiltered && { filterFile }),
    folder: join(folder, "shared"),
    programs: realPrograms,
  });
}

export const bare = noIsolation(realPrograms.run);

export interface Place {
  readonly workspace: Workspace;
  readonly run: RunCommand;
  /** Runs a script of the shell to its end; its exit code and all that it prints. */
  sh(
    script: string,
    variables?: Readonly<Record<string, string>>,
  ): Promise<{ readonly exit: number | null; readonly text: string }>;
}

const closed: string[] = [];

/** Makes a folder outside of /tmp, which no other user can enter; call {@link removeAll} after the tests. */
export function closedFolder(): string {
  const folder = mkdtempSync(join(homedir(), ".chartroom-isolation-test-"));
  closed.push(folder);
  return folder;
}

/** Removes what tests have made. */
export async function removeAll(): Promise<void> {
  for (const folder of closed.splice(0)) rmSync(folder, { recursive: true, force: true });
  await stopAll();
}

/** Lets work into a workspace, a new one when absent, with a way out if one is opened for its folder. */
export async function enter(
  isolation: Isolation,
  openNetwork?: (folder: string) => Promise<WorkNetwork>,
  rules?: PathRules,
  workspace = workspaceAt(closedFolder(), randomUUID()),
): Promise<Place> {
  for (const folder of [workspace.tree, workspace.home]) mkdirSync(folder, { recursive: true });
  const network = await openNetwork?.(workspace.folder);
  const run = await isolation.enter(workspace, [], { network, rules });
  return {
    workspace,
    run,
    async sh(script, variables = {}) {
      let text = "";
      const { exit } = await run({
        program: "sh",
        args: ["-c", script],
        folder: workspace.tree,
        environment: commandEnvironment(realPrograms, workspace.home, { ...variables }),
        onOutput: (bytes) => {
          text += bytes;
        },
      });
      return { exit, text };
    },
  };
}
