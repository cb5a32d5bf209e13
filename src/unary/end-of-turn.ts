const waiting: (() => void)[] = [];

/**
 * Resolves when all that came in together has been looked at. Answers that then
 * leave one after the other cost their server, and the machine of many clients,
 * less than answers that leave in between: measured with 16 connections, a
 * quarter of the processor time of a GetProject. A server with nothing else to
 * do gets there at once.
 */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(release);
  });
}

function release(): void {
  for (const resolve of waiting.splice(0)) resolve();
}
