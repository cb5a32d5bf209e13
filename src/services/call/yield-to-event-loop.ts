const waiting: (() => void)[] = [];

/**
 * Resolves in an iteration of the event loop that it shares with no other caller:
 * concurrent large tasks alternate, and incoming requests are handled between two
 * of them.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeNext);
  });
}

function resumeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resumeNext);
}
