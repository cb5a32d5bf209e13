import { randomUUID } from "node:crypto";
import type { WorkGroups } from "../work-groups.ts";
import { type ConfinedParts, groupedConfinement } from "./container-arguments.ts";
import { runEngine } from "./engine.ts";

/** The limits of a trial: enough for a shell and the engine's program, but quickly reached. */
export const TRIAL_LIMITS = { processes: 128, memoryBytes: 192 * 2 ** 20, processors: 0 } as const;
const TRIAL_PROCESSORS = 0.1;

const PROCESSES = `echo begun
i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done
echo unlimited`;

const MEMORY = `set -e
head -c 1000000 /dev/zero | tail -c 1000000 > /dev/null
echo begun
head -c 402653184 /dev/zero | tail -c 402653184 > /dev/null
echo unlimited`;

/** The system counts how often it has throttled a group. */
const PROCESSORS = `for each in /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat; do [ -r $each ] && stat=$each; done
echo begun
n=0; while [ $n -lt 200 ]; do
  i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done
  grep -q '^nr_throttled [1-9]' "$stat" && exit 0
  n=$((n+1))
done
echo unlimited`;

/** The image to try and the limits of its container. */
export interface LimitsTrial extends ConfinedParts {
  readonly image: string;
  /** The work groups to start podman in, with the limits of a trial; undefined for the engine's own groups. */
  readonly groups?: WorkGroups | undefined;
}

/**
 * Tries whether the engine enforces its limits: it may accept limits and ignore them.
 *
 * @returns the limit that does not hold, as a message for people; undefined when all hold
 */
export async function tryLimits(trial: LimitsTrial): Promise<string | undefined> {
  const tries = [
    ["processes", PROCESSES],
    ["memory", MEMORY],
    // The runner's own groups enforce all limits or none.
    ...(trial.groups || trial.limits.processors === 0 ? [] : [["processors", PROCESSORS]]),
  ] as const;
  const problems = await Promise.all(
    tries.map(async ([what = "", script = ""]) => {
      const text = await outputOf(trial, script);
      if (!text.includes("begun")) return `the limit of ${what} could not be tried: ${firstLineOf(text)}`;
      return text.includes("unlimited") ? `the limit of ${what} is not enforced` : undefined;
    }),
  );
  return problems.find((each) => each !== undefined);
}

async function outputOf(trial: LimitsTrial, script: string): Promise<string> {
  const { engine, image, groups, limits } = trial;
  const processors = limits.processors > 0 ? TRIAL_PROCESSORS : 0;
  const name = `chartroom-trial-${randomUUID()}`;
  const args = [
    [
      "run",
      `--name=${name}`,
      ...groupedConfinement({ ...trial, limits: { ...limits, ...TRIAL_LIMITS, processors } }),
    ],
    ["--network=none", "--entrypoint=/bin/sh", image, "-c", script],
  ].flat();
  const group = groups?.use(`/trial-${name}`);
  try {
    const [file = engine.file, ...before] = [...(group?.prefix ?? []), engine.file];
    return (await runEngine({ ...engine, file }, [...before, ...args])).text;
  } finally {
    await runEngine(engine, ["rm", "--force", name]);
    group?.close();
  }
}

function firstLineOf(text: string): string {
  return text.trim().split("\n")[0] || "the engine said nothing";
}
