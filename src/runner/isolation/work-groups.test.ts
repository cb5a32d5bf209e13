import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { stopAll, temporaryFolder } from "../../../test/harness/server.ts";
import { openWorkGroups, type WorkGroupsChoice } from "./work-groups.ts";

afterAll(stopAll);

/** Makes a folder with the files of a control group. */
function group(folder: string, { controllers = "cpu memory pids", processes = "", given = "" } = {}): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "cgroup.controllers"), `${controllers}\n`);
  writeFileSync(join(folder, "cgroup.subtree_control"), given);
  writeFileSync(join(folder, "cgroup.procs"), processes);
  return folder;
}

/** Fakes the system's control groups, with this process in one of them. */
function machine(own: Parameters<typeof group>[1] = {}) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "mountinfo"), `30 24 0:26 / ${folder} rw - cgroup2 cgroup2 rw\n`);
  writeFileSync(join(folder, "cgroup"), "1:name=systemd:/\n0::/unit\n");
  return { folder, unit: group(join(folder, "unit"), own) };
}

function open(folder: string, choice: Partial<WorkGroupsChoice> = {}) {
  const limits = { memoryBytes: 1_000, processes: 20, processors: 2 };
  return openWorkGroups({ cgroup: "auto", isRoot: false, limits, processFolder: folder, ...choice });
}

test("the runner's own group gets one for the work, and limits by memory, processes and processors", () => {
  const { folder, unit } = machine();
  // The system creates these files in a new group.
  const work = group(join(unit, "chartroom-work"));
  const opened = open(folder);
  if ("problem" in opened) throw new Error(opened.problem);
  expect(opened.groups.folder).toBe(work);
  for (const each of [unit, work])
    expect(readFileSync(join(each, "cgroup.subtree_control"), "utf8")).toBe("+memory +pids +cpu");
  const one = opened.groups.use("/srv/workspaces/1234");
  const own = join(work, "work-1234");
  const read = (name: string) => readFileSync(join(own, name), "utf8");
  expect(["memory.max", "pids.max", "cpu.max"].map(read)).toEqual(["1000", "20", "200000 100000"]);
  expect(one.prefix.at(-1)).toBe(own);
  // The last command that uses it ends it and kills all remaining processes.
  const other = opened.groups.use("/srv/workspaces/1234");
  one.close();
  expect(existsSync(join(own, "cgroup.kill"))).toBe(false);
  other.close();
  expect(read("cgroup.kill")).toBe("1");
});

test("a group that cannot be removed at its end goes with the next use of another", () => {
  const { folder, unit } = machine();
  const work = group(join(unit, "chartroom-work"));
  const opened = open(folder);
  if ("problem" in opened) throw new Error(opened.problem);
  const own = join(work, "work-1234");
  opened.groups.use("/srv/workspaces/1234").close();
  // The fake's files keep the folder, like processes that are still ending.
  expect(existsSync(own)).toBe(true);
  rmSync(own, { recursive: true });
  mkdirSync(own);
  const other = opened.groups.use("/srv/workspaces/5678");
  expect(existsSync(own)).toBe(false);
  other.close();
});

test("a runner that is alone in its group moves into one next to those of its work", () => {
  const { folder, unit } = machine({ processes: `${process.pid}\n` });
  const own = group(join(unit, "chartroom-runner"));
  group(join(unit, "chartroom-work"));
  // The fake's list of processes never becomes empty.
  expect(open(folder)).toHaveProperty("groups");
  expect(readFileSync(join(own, "cgroup.procs"), "utf8")).toBe(String(process.pid));
});

test("a group that the machine gave already needs nothing more", () => {
  const { folder, unit } = machine({ given: "memory pids cpu\n" });
  const work = group(join(unit, "chartroom-work"), { given: "cpu memory pids" });
  expect(open(folder, { cgroup: unit, isRoot: true })).toHaveProperty("groups");
  expect(readFileSync(join(work, "cgroup.subtree_control"), "utf8")).toBe("cpu memory pids");
});

test("where nothing is delegated, it says why", () => {
  const problem = (found: ReturnType<typeof open>) => ("problem" in found ? found.problem : "none");
  const { folder, unit } = machine();
  expect(problem(open(folder, { cgroup: "none" }))).toContain("--isolation-cgroup none");
  expect(problem(open(folder, { isRoot: true }))).toContain("runner of root");
  expect(problem(open(folder, { cgroup: join(folder, "nothing") }))).toContain("no such file");
  expect(problem(open(machine({ processes: "1\n" }).folder))).toContain("other processes than the runner");
  const { folder: other, unit: poor } = machine({ controllers: "hugetlb pids" });
  expect(problem(open(other))).toBe(`${poor} has no memory and no cpu`);
  const { folder: closed, unit: full } = machine();
  const work = group(join(full, "chartroom-work"));
  mkdirSync(join(work, "work-trial", "cgroup.procs"), { recursive: true });
  expect(problem(open(closed))).toMatch(/^no process may join a group there: .*work-trial\/cgroup\.procs/);
  rmSync(join(unit, "cgroup.subtree_control"));
  expect(problem(open(folder))).toContain("cgroup.subtree_control");
  writeFileSync(join(folder, "mountinfo"), "30 24 0:26 / / rw - tmpfs none rw\n");
  expect(problem(open(folder))).toBe("the machine has no cgroup v2");
});
