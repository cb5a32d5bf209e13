import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { Egress } from "../egress/egress.ts";
import { PROXY_PORT } from "../egress/work-network.ts";
import { commandEnvironment, createCommandRunner } from "../process/command.ts";
import { workspaceAt } from "../steps/workspace.ts";
import { type BubblewrapOptions, createBubblewrap, type SandboxPrograms } from "./bubblewrap.ts";

type Parts = Omit<BubblewrapOptions, "folder" | "programs" | "record">;
type TrialOptions = Pick<Parts, "view" | "limits" | "groups" | "user" | "signalGroup"> & {
  readonly path: string;
  /** The folders of the programs that sandboxes are made with; those of the system when absent. */
  readonly programFolders?: readonly string[];
};

/** The names of processors as Linux has them. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/**
 * Tries bubblewrap by running a command in a sandbox as work has it.
 *
 * @returns what it takes to make sandboxes, or why none can be made, for people
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

/** The folders of the system's programs. Not PATH: these run as the runner's user, beside the work. */
const PROGRAM_FOLDERS = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin"];
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
    const file = folders.map((folder) => join(folder, name)).find(isExecutable);
    if (file === undefined)
      return { problem: `${name} is not installed (on Debian: apt-get install ${packageName})` };
    found[name] = file;
  }
  return found as unknown as SandboxPrograms;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Fails where a part of what a sandbox promises does not hold. */
const TRIAL = `
set -e
has() { grep -q "^$1:[[:space:]]*$2\\$" /proc/self/status; }
has NoNewPrivs 1 || { echo "new privileges are possible" >&2; exit 1; }
has Seccomp 2 || { echo "system calls are not filtered" >&2; exit 1; }
has CapEff 0000000000000000 || { echo "it has capabilities" >&2; exit 1; }
[ "$(id -u)" != 0 ] || { echo "it is root" >&2; exit 1; }
[ "$(grep -c : /proc/net/dev)" = 1 ] || { echo "it has the network of the machine" >&2; exit 1; }
grep -q "$LISTENING" /proc/net/tcp || { echo "it does not reach a proxy" >&2; exit 1; }
touch file "$HOME/file" /tmp/file
! touch /usr/file /file 2>&1
`;

/** The forwarder's port on 127.0.0.1, as the system lists it. */
const LISTENING = `0100007F:${PROXY_PORT.toString(16).toUpperCase().padStart(4, "0")}`;
const NOWHERE = { named: { registries: [], models: [] }, privateNetworks: [] };

async function tryIn(folder: string, parts: Parts, path: string): Promise<string | undefined> {
  const programs = { run: createCommandRunner(parts.signalGroup), path };
  const isolation = await createBubblewrap({ ...parts, folder: join(folder, "shared"), programs });
  const workspace = workspaceAt(folder, "00000000-0000-4000-8000-000000000000");
  for (const each of [workspace.tree, workspace.home]) await mkdir(each, { recursive: true });
  const network = await new Egress({ serverUrl: "", ...NOWHERE, machine: { programs, env: {} } }).open({
    folder: workspace.folder,
    initializer: undefined,
    policy: { sets: [] },
  });
  const run = await isolation.enter(workspace, [], { network });
  let text = "";
  const { exit } = await run({
    program: "sh",
    args: ["-c", TRIAL],
    folder: workspace.tree,
    environment: commandEnvironment(programs, workspace.home, { LISTENING }),
    timeoutMs: 60_000,
    onOutput: (bytes) => {
      if (text.length < 1_000) text += bytes.toString();
    },
  })
    .catch((error) => {
      throw new Error(firstLineOf(text) || (error as Error).message);
    })
    .finally(() => network.close());
  return exit === 0 ? undefined : firstLineOf(text) || `a trial ended with ${exit}`;
}

function firstLineOf(text: string): string {
  return (text.trim().split("\n")[0] ?? "").replace(/\.$/, "");
}

/** O_CLOEXEC, as the system shows the flags of a descriptor. */
const CLOSE_ON_EXEC = 0o2000000;

/** Returns the descriptors that any program would get which this process starts. */
function findInheritedDescriptors(): ReadonlySet<number> {
  const isInherited = (descriptor: string) => {
    try {
      const text = readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8");
      const flags = /^flags:\s*([0-7]+)$/m.exec(text)?.[1];
      return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
    } catch {
      // That of the folder, which is closed by now.
      return false;
    }
  };
  return new Set(readdirSync("/proc/self/fdinfo").filter(isInherited).map(Number));
}
