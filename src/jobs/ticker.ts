import type { Job } from "./job.ts";

/** Where failures are told. */
export interface JobLog {
  error(facts: object, message: string): void;
}

export interface RunningJobs {
  /** Starts no more runs and waits for those under way. */
  stop(): Promise<void>;
}

/**
 * Runs each job at its interval, the first time after one interval. A job that
 * is still running when its turn comes misses that turn; one that fails is
 * logged and has its next turn as usual. The timers keep no process alive.
 */
export function startJobs(jobs: readonly Job[], log: JobLog): RunningJobs {
  const underWay = new Map<Job, Promise<void>>();
  const timers = jobs.map((job) =>
    setInterval(() => {
      if (underWay.has(job)) return;
      const run = runLogged(job, log).finally(() => underWay.delete(job));
      underWay.set(job, run);
    }, job.everyMs).unref(),
  );
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(underWay.values());
    },
  };
}

async function runLogged(job: Job, log: JobLog): Promise<void> {
  try {
    await job.run();
  } catch (err) {
    log.error({ job: job.name, err }, "a job failed");
  }
}
