import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import {
  EnvironmentWorkSchema,
  PrebuildRemovalWorkSchema,
  PrebuildWorkSchema,
} from "#gen/runner/v1/work_pb.js";
import { EnvironmentInitializerSchema, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import type { Assignment, RunnerTools } from "../../src/runner/protocol/assignment.ts";
import { executeEnvironment } from "../../src/runner/steps/environment-work.ts";
import { executePrebuild, executePrebuildRemoval } from "../../src/runner/steps/prebuild-work.ts";
import { leasedAssignment, realTools } from "../harness/assignment.ts";
import { type BareRepository, bareRepository, runGit } from "../harness/git-repository.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

const PREBUILD = "01900000-0000-7000-8000-00000000000a";
const ENVIRONMENT = "01900000-0000-7000-8000-00000000000b";

let tools: RunnerTools;
let repository: BareRepository;
let assignment: Assignment;
beforeAll(async () => {
  tools = await realTools();
  repository = bareRepository(temporaryFolder(), { "a.txt": "one\n", ".gitignore": "built\n" }, "hello.git");
  assignment = leasedAssignment(
    tools,
    {},
    {
      reportProgress: () => ({ expiresAt: timestampFromMs(Date.now() + 60_000), stop: false }),
    },
  );
});
afterAll(async () => {
  assignment.lease.interrupt("lost");
  await stopAll();
});

const initializer = () =>
  create(EnvironmentInitializerSchema, {
    specs: [{ spec: { case: "git", value: { remoteUri: repository.url } } }],
  });
const prebuild = (more: MessageInitShape<typeof PrebuildWorkSchema> = {}) =>
  executePrebuild(
    assignment,
    create(PrebuildWorkSchema, { prebuildId: PREBUILD, initializer: initializer(), ...more }),
  );
const environmentWork = (prebuildId: string, desiredPhase = EnvironmentPhase.RUNNING) =>
  create(EnvironmentWorkSchema, {
    prebuildId,
    environment: { id: ENVIRONMENT, spec: { desiredPhase, content: { initializer: initializer() } } },
  });
const environment = (...work: Parameters<typeof environmentWork>) =>
  executeEnvironment(assignment, environmentWork(...work));
const prepared = () => join(tools.prebuilds, PREBUILD, "tree", "hello");
const folder = () => join(tools.workspaces, ENVIRONMENT, "tree", "hello");
const checkoutOf = (root: string, id: string) =>
  JSON.parse(readFileSync(join(root, id, "complete.json"), "utf8"))[0];

test("an environment starts as a copy of the prepared workspace, brought up to date", async () => {
  await prebuild();
  expect(readFileSync(join(prepared(), "a.txt"), "utf8")).toBe("one\n");
  writeFileSync(join(prepared(), "built"), "dear");
  const newest = repository.commit({ "a.txt": "two\n" });
  await environment(PREBUILD);
  expect(readFileSync(join(folder(), "built"), "utf8")).toBe("dear");
  expect(readFileSync(join(folder(), "a.txt"), "utf8")).toBe("two\n");
  expect(runGit(folder(), ["rev-parse", "HEAD"])).toBe(newest);
  expect(readFileSync(join(prepared(), "a.txt"), "utf8")).toBe("one\n");
  // What the preparation has left next to the checkout is a change of the environment's.
  expect(checkoutOf(tools.prebuilds, PREBUILD)).toHaveProperty("stamp");
  expect(checkoutOf(tools.workspaces, ENVIRONMENT)).not.toHaveProperty("stamp");
  await environment("", EnvironmentPhase.DELETED);
});

test("a copy is taken as it is where the remote has nothing new: no file is written again", async () => {
  const commands: string[] = [];
  const { run } = tools.git.programs;
  const recording: RunnerTools = {
    ...tools,
    git: {
      ...tools.git,
      programs: {
        ...tools.git.programs,
        run(command) {
          commands.push(command.args.find((arg, at, all) => arg !== "-c" && all[at - 1] !== "-c") ?? "");
          return run(command);
        },
      },
    },
  };
  await prebuild();
  const [before, later] = [new Date(1_000_000), new Date(2_000_000)];
  // A file that git writes again is a new one, with the time of now.
  utimesSync(join(prepared(), "a.txt"), before, before);
  runGit(prepared(), ["update-index", "-q", "--refresh"]);
  for (const time of [before, later]) {
    if (time === later) {
      repository.commit({ "b.txt": "b\n" });
      commands.splice(0);
    }
    await executeEnvironment({ ...assignment, tools: recording }, environmentWork(PREBUILD));
    expect(commands.filter((command) => command !== "init")).toEqual(
      time === before ? ["ls-remote", "checkout"] : ["ls-remote", "fetch", "for-each-ref", "checkout"],
    );
    expect(statSync(join(folder(), "a.txt")).mtimeMs).toBe(before.getTime());
    expect(existsSync(join(folder(), "b.txt"))).toBe(time === later);
    expect(runGit(folder(), ["status", "--porcelain", "--branch"])).toBe("## main...origin/main");
    await environment("", EnvironmentPhase.DELETED);
  }
});

test("once the prepared workspace is removed, environments start from their initializer", async () => {
  await executePrebuildRemoval(assignment, create(PrebuildRemovalWorkSchema, { prebuildId: PREBUILD }));
  expect(readdirSync(tools.prebuilds)).toEqual([]);
  await executePrebuildRemoval(assignment, create(PrebuildRemovalWorkSchema, { prebuildId: PREBUILD }));
  await environment(PREBUILD);
  expect(existsSync(join(folder(), "built"))).toBe(false);
  expect(existsSync(join(folder(), "a.txt"))).toBe(true);
  await environment("", EnvironmentPhase.DELETED);
});

test.each(["before", "while"])(
  "an environment starts from its initializer where the prepared workspace goes %s it is copied",
  async (when) => {
    await prebuild();
    const removed = join(tools.prebuilds, PREBUILD);
    const copies: string[] = [];
    const { run } = tools.programs;
    const removing: RunnerTools = {
      ...tools,
      programs: {
        ...tools.programs,
        run(command) {
          if (command.program === "cp") {
            copies.push(command.program);
            // The removal takes the marker first, and the folders after what is in them.
            rmSync(join(removed, "complete.json"));
            rmSync(when === "before" ? removed : prepared(), { recursive: true });
          }
          return run(command);
        },
      },
    };
    await executeEnvironment({ ...assignment, tools: removing }, environmentWork(PREBUILD));
    expect(copies).toEqual(["cp"]);
    expect(readFileSync(join(folder(), "a.txt"), "utf8")).toBe("two\n");
    expect(runGit(folder(), ["status", "--porcelain", "--branch"])).toBe("## main...origin/main");
    await environment("", EnvironmentPhase.DELETED);
    await executePrebuildRemoval(assignment, create(PrebuildRemovalWorkSchema, { prebuildId: PREBUILD }));
  },
);

test("a preparation that takes too long leaves nothing", async () => {
  await expect(prebuild({ timeout: durationFromMs(1) })).rejects.toMatchObject({
    reason: "prebuild_timed_out",
  });
  expect(readdirSync(tools.prebuilds)).toEqual([]);
});

test("a preparation whose automations file leaves the repository leaves nothing", async () => {
  await expect(prebuild({ automationsFilePath: "../../x" })).rejects.toMatchObject({
    reason: "path_refused",
  });
  expect(readdirSync(tools.prebuilds)).toEqual([]);
});

test("an id that is none becomes no path", async () => {
  await expect(prebuild({ prebuildId: "../../x" })).rejects.toMatchObject({ reason: "path_refused" });
});
