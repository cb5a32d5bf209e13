const waiting: (() => void)[] = [];

/**
 * Resolves when all requests that arrived together have been read. Responses that
 * are then sent one after the other cost their server, and the machine of many
 * clients, less than responses sent in between: measured with 16 connections, a
 * quarter of the processor time of a GetProject. An idle server gets there at
 * once.
 */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(release);
  });
}

function release(): void {
  for (const resolve of waiting.splice(0)) resolve();
}
