import process from "node:process";

/** Random choices that a seed repeats. */
export interface Random {
  /** What SEED in the environment must be set to for the same choices. */
  readonly seed: number;
  /** From 0, below 1. */
  fraction(): number;
  /** A whole number from `least` to `most`, both possible. */
  integer(least: number, most: number): number;
  /** True this often; 0.5 is every second time. */
  chance(probability: number): boolean;
  /** One of the elements; the list must not be empty. */
  pick<T>(list: readonly T[]): T;
  /** Up to `most` different elements, in random order. */
  some<T>(list: readonly T[], most: number): T[];
  bytes(length: number): Uint8Array;
  /** A generator of its own, the same for the same `name` whatever else was drawn. */
  fork(name: string): Random;
}

/** The seed from SEED, or a new one; printed either way, so that a failure can be repeated. */
export function printedRandom(what: string): Random {
  const given = process.env.SEED;
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`SEED must be a whole number, not "${given}"`);
  process.stdout.write(`${what}: SEED=${seed}\n`);
  return createRandom(seed);
}

/** Mulberry32: 32 bits of state are plenty for choices in tests. */
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
