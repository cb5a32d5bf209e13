/**
 * Measures the cost of a workspace that starts from a prebuild: `npm run bench:prebuilds`, five minutes. Writes
 * bench/PREBUILDS.md. With `--quick` it does less and only prints. Needs Linux and root to mount file systems. If the
 * machine lacks something, it names that and measures nothing.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { stopAll } from "../../test/harness/server.ts";
import { barTable } from "../bars.ts";
import { type Figures, table } from "../figures.ts";
import { loadOfLastMinute, machineLines } from "../machine.ts";
import { FILE_SYSTEMS, missingForFileSystems, withFileSystem } from "./file-systems.ts";
import type { Cost, Costs } from "./measure.ts";

const { values: options } = parseArgs({ options: { quick: { type: "boolean" } } });
const isQuick = options.quick === true;
const [files, bytes, roundCount] = isQuick ? [2_000, 40e6, 1] : [50_000, 1e9, 2];

const missing = missingForFileSystems();
for (const each of missing) process.stderr.write(`missing: ${each}\n`);
if (missing.length > 0) process.exit(1);

const began = new Date();
const machine = machineLines();
const loads = [loadOfLastMinute()];
const measured = FILE_SYSTEMS.map((fileSystem) => {
  const costs = withFileSystem(fileSystem, measureIn);
  loads.push(loadOfLastMinute());
  process.stderr.write(`${fileSystem.name}: ${JSON.stringify(costs)}\n`);
  return { name: fileSystem.name, ...costs };
});
await stopAll();

const tookMinutes = (Date.now() - began.getTime()) / 60_000;
const page = `# Workspaces that start from a prebuild

Made by \`npm run bench:prebuilds${isQuick ? " -- --quick" : ""}\` on ${began.toISOString().slice(0, 10)} in ${tookMinutes.toFixed(0)} minutes; not edited.

${machine.map((line) => `- ${line}`).join("\n")}
- Load of the machine before and after each file system: ${loads.map((load) => load.toFixed(1)).join(", ")}

The built-in runner creates a workspace from a prebuild of a small repository on the same machine, and updates the
repository. For comparison, the same function only copies the same files. Each file system is in a separate image file.
Processor time is that of the runner and the programs that it runs. Medians of ${roundCount} rounds, each of 20 workspaces for the
small repository.

## Targets

${barTable(
  measured.map(({ name, small }) => ({
    what: `${name}: processor time besides the copy, ms`,
    rounds: small.workspace.map((each, index) => each.processorMs - (small.copy[index]?.processorMs ?? 0)),
    atMost: 30,
  })),
).join("\n")}

## The repository alone

${tables("small")}

## With ${files.toLocaleString("en")} more files of ${(bytes / 1e6).toLocaleString("en")} MB in all

${tables("large")}
`;
if (isQuick) process.stdout.write(page);
else writeFileSync(join(import.meta.dirname, "../PREBUILDS.md"), page);

function measureIn(folder: string): { readonly small: Costs; readonly large: Costs } {
  const output = execFileSync(process.execPath, [join(import.meta.dirname, "measure.ts")], {
    env: {
      PATH: process.env.PATH,
      TMPDIR: folder,
      FILES: String(files),
      BYTES: String(bytes),
      ROUNDS: String(roundCount),
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(output.toString());
}

function tables(size: "small" | "large"): string {
  return measured
    .map(({ name, [size]: costs }) => {
      const rounds = costs.workspace.map((each, index) => ({
        ...figures("the workspace", each),
        ...figures("the copy alone", costs.copy[index]),
      }));
      return `### ${name[0]?.toUpperCase()}${name.slice(1)}\n\n${table(rounds).join("\n")}`;
    })
    .join("\n\n");
}

function figures(what: string, cost: Cost | undefined): Figures {
  return {
    [`${what}, ms`]: cost?.tookMs ?? Number.NaN,
    [`${what}, ms of processor`]: cost?.processorMs ?? Number.NaN,
    [`${what}, MB on the disk`]: (cost?.bytes ?? Number.NaN) / 1e6,
  };
}
