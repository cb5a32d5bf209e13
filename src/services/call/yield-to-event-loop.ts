const waiting: (() => void)[] = [];

/**
 * Resolves in a later iteration of the event loop, one caller per iteration: concurrent large tasks alternate, and
 * incoming requests run between them.
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
