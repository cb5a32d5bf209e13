/** Elements are checked for so long before others have a turn; one of them at its bounds takes 2 to 4. */
const TURN_MS = 10;

/**
 * Checks the elements of a batch and lets other requests have their turn in
 * between: a hundred elements at their bounds take hundreds of milliseconds. To be
 * done before a transaction begins, which nobody else can interrupt.
 *
 * @param check throws what is wrong with an element
 * @returns a function that throws for an element what its check threw
 */
export async function checkInTurns<T extends object>(
  elements: readonly T[],
  check: (element: T) => void,
): Promise<(element: T) => void> {
  const refusals = new Map<T, unknown>();
  let begin = performance.now();
  for (const element of elements) {
    try {
      check(element);
    } catch (error) {
      refusals.set(element, error);
    }
    if (performance.now() - begin < TURN_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begin = performance.now();
  }
  return (element) => {
    if (refusals.has(element)) throw refusals.get(element);
  };
}
