/** Everything that must hold before a change lands, all checks at the same time; prints only what does not. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brokenRules } from "./layers.ts";
import { brokenScopes } from "./scopes.ts";
import { riddles } from "./words.ts";

const root = join(import.meta.dirname, "..");

interface Outcome {
  readonly name: string;
  readonly problem: string;
}

/** Runs one program; its whole output is the problem when it fails. */
function run(name: string, command: string, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(join(root, "node_modules/.bin", command), args, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("error", (error) => resolve({ name, problem: error.message }));
    child.on("close", (code) => resolve({ name, problem: code === 0 ? "" : output || `exit code ${code}` }));
  });
}

/** Generates the code again, next to the committed one, and compares. */
async function freshness(): Promise<Outcome> {
  const name = "generated code is fresh";
  const folder = mkdtempSync(join(tmpdir(), "chartroom-gen-"));
  try {
    const generated = await run(name, "buf", ["generate", "--output", folder]);
    if (generated.problem) return generated;
    const differences = await new Promise<string>((resolve) => {
      const diff = spawn("git", ["diff", "--no-index", "--stat", join(root, "gen"), join(folder, "gen")], {
        cwd: root,
      });
      let output = "";
      diff.stdout.on("data", (chunk) => (output += chunk));
      diff.on("close", () => resolve(output));
    });
    return {
      name,
      problem: differences && `gen/ is stale: run \`npm run generate\` and commit it\n${differences}`,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const outcomes = await Promise.all([
  run("buf lint", "buf", ["lint"]),
  run("buf format", "buf", ["format", "--diff", "--exit-code"]),
  run("buf breaking", "buf", ["breaking", "proto", "--against", "api/v1.binpb", "--exclude-imports"]),
  freshness(),
  run("types", "tsc", ["-p", "."]),
  run("types of the console", "tsc", ["-p", "console"]),
  run("types of the packages", "tsc", ["-p", "packages"]),
  run("biome", "biome", ["check", "."]),
  Promise.resolve({ name: "layers and areas", problem: brokenRules(root).join("\n") }),
  Promise.resolve({ name: "scopes of store/", problem: brokenScopes(root).join("\n") }),
  Promise.resolve({ name: "plain words", problem: riddles(root).join("\n") }),
]);
for (const { name, problem } of outcomes) {
  process.stdout.write(`${problem ? "FAILS" : "holds"}  ${name}\n`);
  if (problem) process.stdout.write(`${problem.trimEnd().replace(/^/gm, "    ")}\n`);
}
process.exitCode = outcomes.some(({ problem }) => problem) ? 1 : 0;
