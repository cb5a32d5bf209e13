/**
 * Returns the milliseconds of CPU time that the work takes; time in which the thread is not
 * scheduled does not count.
 */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
