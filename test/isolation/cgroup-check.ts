/**
 * Tries the limits of control groups with real sandboxes: node test/isolation/cgroup-check.ts FOLDER, on a machine with
 * cgroup v2 whose group FOLDER this process may change. The tests' machines have no such controllers.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openWorkGroups } from "../../src/runner/isolation/work-groups.ts";
import { until } from "../harness/until.ts";
import { bubblewrap, enter, isRoot, removeAll } from "./sandboxes.ts";

const MIB = 2 ** 20;
const limits = { memoryBytes: 128 * MIB, processes: 50, processors: 1 };
const opened = openWorkGroups({ cgroup: process.argv[2] ?? "auto", isRoot, limits });
if ("problem" in opened) throw new Error(opened.problem);
const { groups } = opened;
const place = await enter(
  await bubblewrap({ groups, limits: { memoryBytes: 128 * MIB, processes: 10_000 } }),
);
const group = () =>
  join(groups.folder, readdirSync(groups.folder).find((name) => name.startsWith("work-")) ?? "");

// Without the group, the limit is on each process alone, and so of no use here.
const forks = "i=0; while [ $i -lt 100 ]; do sleep 30 & i=$((i+1)); done; echo started";
const forked = await place.sh(forks);
assert.match(forked.text, /fork/);
assert.doesNotMatch(forked.text, /started/);
process.stdout.write("processes: refused past the limit\n");

const half =
  "/usr/bin/python3 -c 'import time; b = bytearray(100 * 1024 * 1024); print(\"kept\", flush=True); time.sleep(5)'";
const one = await place.sh(half);
assert.equal(one.text, "kept\n");
const both = await place.sh(
  `${half} & one=$!; ${half} & two=$!; wait $one; a=$?; wait $two; echo "ends $a $?"`,
);
assert.match(both.text, /ends (137 0|0 137|137 137)/);
process.stdout.write("memory: two processes that fit alone do not fit together\n");

const running = place.sh("while :; do :; done & exec timeout 2 cat /dev/zero > /dev/null");
await until(
  () => readFileSync(join(group(), "cgroup.procs"), "utf8"),
  (ids) => ids !== "",
);
assert.equal(readFileSync(join(group(), "cpu.max"), "utf8"), "100000 100000\n");
await running;
assert.deepEqual(
  readdirSync(groups.folder).filter((name) => name.startsWith("work-")),
  [],
);
process.stdout.write("processor: limited, and the group is gone with its last command\n");
await removeAll();
