import { parseArgs } from "node:util";

/** The options of a bench run. */
export interface Options {
  readonly isQuick: boolean;
  /** The file that the ratios are written to as JSON. */
  readonly json: string | undefined;
  /** Names of cases; all when empty. */
  readonly cases: readonly string[];
  /** Names of peers; all when empty. */
  readonly only: readonly string[];
  readonly rounds: number;
  /** Duration of a case on a peer in a round, all parts together. */
  readonly seconds: number;
  /** Number of parts, for which the peers take turns, since the machine's speed varies from second to second. */
  readonly parts: number;
  /** Duration of a peer's warm-up in the first round and in later ones. */
  readonly warmUpSeconds: { readonly first: number; readonly later: number };
  /** A folder for CPU profiles of every server. */
  readonly profiles: string | undefined;
}

// The first warm-up is longer, since the engine's compiler needs some thousand requests.
const FULL = { rounds: 5, seconds: 2.5, parts: 4, warmUpSeconds: { first: 4, later: 0.3 } };
const QUICK = { rounds: 3, seconds: 0.25, parts: 1, warmUpSeconds: { first: 0.6, later: 0.1 } };

/** @throws for an unknown option */
export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      case: { type: "string", default: "" },
      only: { type: "string", default: "" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      profiles: { type: "string" },
    },
  });
  const usual = values.quick ? QUICK : FULL;
  return {
    isQuick: values.quick,
    json: values.json,
    cases: names(values.case),
    only: names(values.only),
    rounds: Number(values.rounds ?? usual.rounds),
    seconds: Number(values.seconds ?? usual.seconds),
    parts: usual.parts,
    warmUpSeconds: usual.warmUpSeconds,
    profiles: values.profiles,
  };
}

/** Returns whether a run is incomplete, so that its page must not replace the full one. */
export function isSelection(options: Options): boolean {
  return isPart(options) || shorterRun(options) !== "";
}

/** Returns whether a run leaves out cases or peers, or profiles the servers. */
export function isPart({ cases, only, profiles }: Options): boolean {
  return cases.length > 0 || only.length > 0 || profiles !== undefined;
}

/** Returns the options that change the usual rounds and seconds, in the form that the page shows. */
export function shorterRun({ rounds, seconds }: Options): string {
  if (rounds === FULL.rounds && seconds === FULL.seconds) return "";
  return ` -- --rounds ${rounds} --seconds ${seconds}`;
}

function names(text: string): string[] {
  return text.split(",").filter((name) => name !== "");
}
