import type { Job } from "./job.ts";

/** The log for failures of jobs. */
export interface JobLog {
  error(facts: object, message: string): void;
}

/** Jobs that have been started. */
export interface RunningJobs {
  /** Starts no more runs and waits for the current ones. */
  stop(): Promise<void>;
}

/**
 * Runs each job at its interval, the first time after one interval. A job that is still running when its next run is
 * due skips that run. A failure is logged and does not affect later runs. The timers do not keep the process alive.
 *
 * @param leads whether this server runs the jobs that run on one server only; the others run on every server
 */
export function startJobs(jobs: readonly Job[], log: JobLog, leads: () => boolean = () => true): RunningJobs {
  const running = new Map<Job, Promise<void>>();
  const timers = jobs.map((job) =>
    setInterval(() => {
      if (running.has(job) || !(job.isLocal || leads())) return;
      const run = runLogged(job, log).finally(() => running.delete(job));
      running.set(job, run);
    }, job.everyMs).unref(),
  );
  return {
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await Promise.all(running.values());
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
