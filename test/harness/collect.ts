/** Reads a sequence to its end. */
export async function collect<T>(sequence: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of sequence) all.push(each);
  return all;
}
