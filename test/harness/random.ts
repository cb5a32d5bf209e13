import process from "node:process";

/** Random choices that a seed reproduces. */
export interface Random {
  /** The value of the environment variable SEED that reproduces these choices. */
  readonly seed: number;
  /** At least 0, below 1. */
  fraction(): number;
  /** Returns a whole number from `least` to `most`, both inclusive. */
  integer(least: number, most: number): number;
  /** Returns true with this probability. */
  chance(probability: number): boolean;
  /** Returns one of the elements; the list must not be empty. */
  pick<T>(list: readonly T[]): T;
  /** Returns up to `most` different elements, in random order. */
  some<T>(list: readonly T[], most: number): T[];
  bytes(length: number): Uint8Array;
  /** Returns an independent generator that depends only on the seed and `name`. */
  fork(name: string): Random;
}

/**
 * Returns a generator seeded by SEED, or with a new seed, and prints the seed so that a failure can
 * be reproduced.
 */
export function printedRandom(what: string): Random {
  const given = process.env.SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`SEED must be a whole number, not "${given}"`);
  process.stdout.write(`${what}: SEED=${seed}\n`);
  return createRandom(seed);
}

/** Mulberry32: 32 bits of state are enough for choices in tests. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const integer = (least: number, most: number) => least + Math.floor(fraction() * (most - least + 1));
  const random: Random = {
    seed,
    fraction,
    integer,
    chance: (probability) => fraction() < probability,
    pick<T>(list: readonly T[]): T {
      if (list.length === 0) throw new Error("there is nothing to pick from");
      return list[integer(0, list.length - 1)] as T;
    },
    some<T>(list: readonly T[], most: number): T[] {
      const rest = [...list];
      const count = Math.min(most, rest.length);
      return Array.from({ length: count }, () => rest.splice(integer(0, rest.length - 1), 1)[0] as T);
    },
    bytes: (length) => Uint8Array.from({ length }, () => integer(0, 255)),
    fork: (name) =>
      createRandom([...name].reduce((hash, c) => Math.imul(hash, 31) + (c.codePointAt(0) ?? 0), seed)),
  };
  return random;
}
