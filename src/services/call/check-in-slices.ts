/** The time for which elements are checked before other requests run. An element of maximum size takes 2 to 4 ms. */
const SLICE_MS = 10;

/**
 * Checks the elements of a batch in time slices and lets other requests run in between: a hundred elements of maximum
 * size take hundreds of milliseconds. Call it before a transaction begins, since a transaction cannot be interrupted.
 *
 * @param check throws the error of an invalid element
 * @returns a function that throws the error of an element, if its check threw one
 */
export async function checkInSlices<T extends object>(
  elements: readonly T[],
  check: (element: T) => void,
): Promise<(element: T) => void> {
  const failures = new Map<T, unknown>();
  let begin = performance.now();
  for (const element of elements) {
    try {
      check(element);
    } catch (error) {
      failures.set(element, error);
    }
    if (performance.now() - begin < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begin = performance.now();
  }
  return (element) => {
    if (failures.has(element)) throw failures.get(element);
  };
}
