import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "@jest/globals";
import { realPrograms } from "../../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../../test/harness/server.ts";
import type { WorkGroups } from "../work-groups.ts";
import { tryContainers } from "./container-trial.ts";

afterAll(stopAll);

/**
 * Fakes an engine: records its calls, runs nothing, and gives the answers of trials in a container. The file
 * `left-out` lists the limits that it accepts but does not enforce.
 */
const STAND_IN = `#!/bin/sh
here=\${0%/*}
case $1 in
rm) for name; do :; done; [ -f "$here/$name" ] && kill "$(cat "$here/$name")"; exit 0 ;;
info|kill|ps) exit 0 ;;
esac
echo "$*" >> "$here/calls"
for each; do
  case $each in
  --name=*) name=\${each#--name=} ;;
  --mount=*target=/run/chartroom) folder=\${each#*source=}; : > "\${folder%%,*}/started"; exit 0 ;;
  --entrypoint=/run/node) echo $$ > "$here/$name"; echo ready; exec sleep 1000 ;;
  esac
done
case $each in *'sleep 60'*) what=processes ;; *'tail -c'*) what=memory ;; *) what=processors ;; esac
[ -f "$here/silent" ] && exit 125
echo begun
[ -n "$IN_GROUP" ] && [ ! -f "$here/leaves-groups" ] && exit 1
case "$*" in *--pids-limit=*) grep -q $what "$here/left-out" 2>/dev/null || exit 137 ;; esac
echo unlimited
`;

const groups: WorkGroups = {
  folder: "/sys/fs/cgroup/chartroom-work",
  use: () => ({ prefix: ["/usr/bin/env", "IN_GROUP=1"], close: () => undefined }),
};

interface Machine {
  readonly engine?: "podman" | "docker";
  readonly processors?: number;
  /** Limits that the engine accepts but does not enforce. */
  readonly leftOut?: string;
  readonly hasGroups?: boolean;
  /** A file next to the engine that changes what it does. */
  readonly file?: string;
}

async function tried({ engine = "podman", processors = 0, leftOut = "", hasGroups, file }: Machine) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, engine), STAND_IN, { mode: 0o755 });
  writeFileSync(join(folder, "left-out"), leftOut);
  if (file !== undefined) writeFileSync(join(folder, file), "");
  const outcome = await tryContainers({
    image: "base",
    repositoryImages: { allowed: [], cli: "", most: 1 },
    view: { readable: [] },
    limits: { processes: 50, memoryBytes: 2 ** 40, processors, diskBytes: 1, tmpBytes: 1, freeDiskBytes: 0 },
    user: undefined,
    isRoot: false,
    env: { PATH: realPrograms.path },
    path: realPrograms.path,
    programFolders: [folder],
    signalGroup: (groupId, signal) => void process.kill(-groupId, signal),
    groups: hasGroups ? groups : undefined,
    trialGroups: hasGroups ? groups : undefined,
  });
  const calls = readFileSync(join(folder, "calls"), "utf8");
  if ("problem" in outcome) return { problem: outcome.problem, calls };
  const { parts } = outcome;
  const limited = parts.groups ? "work" : parts.engine.hasGroups ? "command" : "nothing";
  return { limited, calls };
}

test.each<[string, Machine, string]>([
  ["podman that keeps them limits each command", {}, "command"],
  ["docker that keeps them limits each command", { engine: "docker", processors: 2 }, "command"],
  ["podman that leaves one out limits nothing", { leftOut: "memory" }, "nothing"],
  ["docker that leaves one out limits nothing", { engine: "docker", leftOut: "processes" }, "nothing"],
  ["podman in the groups of work limits all of it", { hasGroups: true, processors: 2 }, "work"],
  ["podman that leaves them limits each command", { hasGroups: true, file: "leaves-groups" }, "command"],
  ["docker in the groups of work limits each command", { engine: "docker", hasGroups: true }, "command"],
  ["an engine that runs no trial limits nothing", { file: "silent" }, "nothing"],
])("%s", async (_, machine, limited) => {
  expect(await tried(machine)).toMatchObject({ limited });
});

test.each(["memory", "processes", "processors"])(
  "an engine that leaves out the limit of %s is not taken where the operator limits processors",
  async (leftOut) => {
    const { problem, calls } = await tried({ leftOut, processors: 2 });
    expect(problem).toBe(`podman: the limit of ${leftOut} is not enforced`);
    // A trial has low limits, and no limits per process.
    const trials = calls.split("\n").filter((call) => call.includes("chartroom-trial-"));
    expect(trials.join("\n")).toContain(
      "--pids-limit=128 --memory=201326592 --memory-swap=201326592 --cpus=0.1",
    );
    expect(trials.join("\n")).not.toContain("--ulimit");
  },
);
