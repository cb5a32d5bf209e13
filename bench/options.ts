import { parseArgs } from "node:util";

/** The options of a run of the bench. */
export interface Options {
  readonly isQuick: boolean;
  /** Where the ratios go as JSON. */
  readonly json: string | undefined;
  /** Names of cases; all when empty. */
  readonly cases: readonly string[];
  /** Names of peers; all when empty. */
  readonly only: readonly string[];
  readonly rounds: number;
  /** How long a case is measured on a peer in a round, all parts together. */
  readonly seconds: number;
  /** In how many turns of all peers that is done: how fast the machine is changes from second to second. */
  readonly parts: number;
  /** How long a peer is asked before that: in its first round, and in later ones. */
  readonly warmUpSeconds: { readonly first: number; readonly later: number };
  /** A folder for processor profiles of every server. */
  readonly profiles: string | undefined;
}

// The first warm-up is for the compiler of the engine too, which needs some thousand requests.
const FULL = { rounds: 5, seconds: 2.5, parts: 4, warmUpSeconds: { first: 4, later: 0.3 } };
const QUICK = { rounds: 3, seconds: 0.25, parts: 1, warmUpSeconds: { first: 0.6, later: 0.1 } };

/** @throws for an option that is unknown */
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

/** Whether a run does less than all, so that its page is not the one to keep. */
export function isSelection(options: Options): boolean {
  return isPart(options) || shorterRun(options) !== "";
}

/** Whether a run leaves out cases or peers, or measures servers that are profiled. */
export function isPart({ cases, only, profiles }: Options): boolean {
  return cases.length > 0 || only.length > 0 || profiles !== undefined;
}

/** Returns the options by which a run asks other than the usual rounds and seconds, as its page shows them. */
export function shorterRun({ rounds, seconds }: Options): string {
  if (rounds === FULL.rounds && seconds === FULL.seconds) return "";
  return ` -- --rounds ${rounds} --seconds ${seconds}`;
}

function names(text: string): string[] {
  return text.split(",").filter((name) => name !== "");
}
