/**
 * Measures the file system of TMPDIR: the cost of a workspace of the built-in runner that starts from a prebuild, and of
 * copying its files alone. Prints one line of JSON. Reads FILES, BYTES and ROUNDS.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { v7 } from "uuid";
import { EnvironmentWorkSchema, PrebuildWorkSchema } from "#gen/runner/v1/work_pb.js";
import { EnvironmentInitializerSchema, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { executeEnvironment } from "../../src/runner/steps/environment-work.ts";
import { executePrebuild } from "../../src/runner/steps/prebuild-work.ts";
import { environmentWorkspace, prebuildWorkspace } from "../../src/runner/steps/work-dirs.ts";
import { copyFolders, removeWorkspace } from "../../src/runner/steps/workspace.ts";
import { leasedAssignment, realTools } from "../../test/harness/assignment.ts";
import { bareRepository } from "../../test/harness/git-repository.ts";
import { stopAll, temporaryFolder } from "../../test/harness/server.ts";
import { processorMs } from "../machine.ts";

/** The cost of an operation. */
export interface Cost {
  readonly tookMs: number;
  /** Processor time of this process and of the programs that it ran. */
  readonly processorMs: number;
  /** Additional space that it uses in the file system. */
  readonly bytes: number;
}

/** The costs of a workspace that starts from a prebuild and of a plain copy of the same files; one of each per round. */
export interface Costs {
  readonly workspace: Cost[];
  readonly copy: Cost[];
}

/** Copies of the small workspace per measurement. Linux counts processor time in hundredths of a second. */
const SMALL_COUNT = 20;

const { FILES = "", BYTES = "", ROUNDS = "" } = process.env;
const tools = await realTools();
const repository = bareRepository(
  temporaryFolder(),
  { "a.txt": "one\n", ".gitignore": "built\n" },
  "hello.git",
);
const source = { case: "git", value: { remoteUri: repository.url } } as const;
const initializer = create(EnvironmentInitializerSchema, { specs: [{ spec: source }] });
const renewal = () => ({ expiresAt: timestampFromMs(Date.now() + 60_000), stop: false });
const assignment = leasedAssignment(tools, {}, { reportProgress: renewal, renewLease: renewal });

const small: Costs = { workspace: [], copy: [] };
const large: Costs = { workspace: [], copy: [] };
const [smallId, largeId] = [await prebuild(0, 0), await prebuild(Number(FILES), Number(BYTES))];
// Warm up: code is compiled when it runs for the first time.
await measure(smallId, { workspace: [], copy: [] }, SMALL_COUNT);
for (let round = 0; round < Number(ROUNDS); round++) {
  await measure(smallId, small, SMALL_COUNT);
  await measure(largeId, large, 1);
}
assignment.lease.interrupt("lost");
await stopAll();
process.stdout.write(`${JSON.stringify({ small, large })}\n`);

/** Creates a prebuild with a number of built files, 200 per folder. */
async function prebuild(files: number, bytes: number): Promise<string> {
  const prebuildId = v7();
  await executePrebuild(assignment, create(PrebuildWorkSchema, { prebuildId, initializer }));
  const built = join(prebuildWorkspace(tools, prebuildId).tree, "hello/built");
  for (let at = 0; at < files; at++) {
    const folder = join(built, String(Math.floor(at / 200)));
    if (at % 200 === 0) mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${at}.js`), randomBytes(Math.floor(bytes / files)));
  }
  return prebuildId;
}

async function measure(prebuildId: string, costs: Costs, count: number): Promise<void> {
  const from = prebuildWorkspace(tools, prebuildId);
  const made: string[] = [];
  costs.workspace.push(
    await costOf(count, async () => {
      const id = v7();
      made.push(id);
      const spec = { desiredPhase: EnvironmentPhase.RUNNING, content: { initializer } };
      await executeEnvironment(
        assignment,
        create(EnvironmentWorkSchema, { prebuildId, environment: { id, spec } }),
      );
    }),
  );
  for (const id of made) await removeWorkspace(tools.programs, environmentWorkspace(tools, id));
  const place = temporaryFolder();
  let copies = 0;
  costs.copy.push(
    await costOf(count, async () => {
      const to = join(place, String(copies++));
      mkdirSync(to);
      await copyFolders(tools.programs, [from.tree, from.home], to);
    }),
  );
  rmSync(place, { recursive: true });
}

async function costOf(count: number, work: () => Promise<void>): Promise<Cost> {
  const used = usedBytes();
  const [began, spent] = [performance.now(), processorMs(process.pid)];
  for (let done = 0; done < count; done++) await work();
  const [tookMs, spentMs] = [performance.now() - began, processorMs(process.pid) - spent];
  return {
    tookMs: tookMs / count,
    processorMs: spentMs / count,
    bytes: (usedBytes() - used) / count,
  };
}

function usedBytes(): number {
  // Write back, so that delayed allocations are counted.
  execFileSync("sync", ["--file-system", tools.workspaces]);
  const { blocks, bfree, bsize } = statfsSync(tools.workspaces);
  return (blocks - bfree) * bsize;
}
