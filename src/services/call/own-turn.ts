const waiting: (() => void)[] = [];

/**
 * Resolves in a turn of the event loop that no other caller of this has: large
 * pieces of work that go on at the same time take turns, and whatever came in
 * is looked at between two of them.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(release);
  });
}

function release(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(release);
}
