/**
 * Measures the overhead of a sandbox for a command: `npm run bench:isolation`. As root it switches to another user, as
 * runners do. `--rounds N` replaces the 100 rounds. With `--json` it prints the figures for a round of bench:workflows.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chooseIsolation } from "../src/runner/isolation/choose-isolation.ts";
import { commandEnvironment, createCommandRunner, type RunCommand } from "../src/runner/process/command.ts";
import { workspaceAt } from "../src/runner/steps/workspace.ts";
import { type Figures, percentile } from "./figures.ts";

const { values: options } = parseArgs({ options: { rounds: { type: "string" }, json: { type: "boolean" } } });
const ROUNDS = Number(options.rounds ?? 100);
const path = process.env.PATH ?? "";
const signalGroup = (groupId: number, signal: NodeJS.Signals | 0) => void process.kill(-groupId, signal);
const programs = { run: createCommandRunner(signalGroup), path };
const folder = mkdtempSync(join(tmpdir(), "chartroom-bench-"));
const workspace = workspaceAt(folder, "00000000-0000-4000-8000-000000000000");
for (const each of [workspace.tree, workspace.home]) mkdirSync(each, { recursive: true });

const chosen = await chooseIsolation({
  isolation: "bubblewrap",
  cgroup: "none",
  image: "",
  readable: [],
  hidden: [],
  user: 64_913,
  isRoot: process.getuid?.() === 0,
  limits: {
    processes: 4_096,
    memoryBytes: 2 ** 40,
    diskBytes: 2 ** 50,
    tmpBytes: 2 ** 50,
    processors: 0,
    freeDiskBytes: 0,
  },
  path,
  signalGroup,
  log: { info() {}, warn() {}, error() {} },
});
const isolation = await chosen.create({ programs, folder: join(folder, "shared") });
const kept = await isolation.enter(workspace, []);
try {
  // Alternate, so that other load on the machine affects both.
  const timesMs = { none: [] as number[], bubblewrap: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    timesMs.none.push(await timeOf(programs.run));
    timesMs.bubblewrap.push(await timeOf(kept));
  }
  if (options.json) {
    const [none, kept] = [percentile(timesMs.none, 50), percentile(timesMs.bubblewrap, 50)];
    const figures: Figures = {
      "a command without a sandbox, median ms": none,
      "a command in a sandbox, median ms": kept,
      "a command in a sandbox, 90 %, ms": percentile(timesMs.bubblewrap, 90),
      "what the sandbox costs, ms": kept - none,
    };
    process.stdout.write(JSON.stringify(figures));
  } else {
    for (const [name, times] of Object.entries(timesMs)) {
      const [median, least, most] = [50, 0, 90].map((each) => percentile(times, each).toFixed(1));
      process.stdout.write(`${name}: median ${median} ms, least ${least} ms, 90 % ${most} ms\n`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function timeOf(run: RunCommand): Promise<number> {
  const startedAt = performance.now();
  const environment = commandEnvironment(programs, workspace.home);
  await run({ program: "sh", args: ["-c", "true"], folder: workspace.tree, environment });
  return performance.now() - startedAt;
}
