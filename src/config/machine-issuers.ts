import { readFileSync } from "node:fs";
import { MACHINE_TOKEN_MAX_SECONDS } from "../domain/identity/machine/machine-token.ts";
import { Fields, readIssuer } from "./json-fields.ts";
import { ConfigError } from "./settings.ts";

/** An issuer of machine tokens that service accounts may trust (docs/sign-in.md). */
export interface MachineIssuer {
  readonly issuer: string;
  /** The accepted audiences; a token must name one of them. */
  readonly audiences: readonly string[];
  /** Maximum lifetime, in seconds, of a token that is exchanged for one of the issuer's. */
  readonly maxSeconds: number;
  /** True if it may be valid for longer than the issuer's token. */
  readonly mayOutlive: boolean;
  /** True if the issuer may be at a non-public address. */
  readonly allowPrivateAddresses: boolean;
}

const MAX_ISSUERS = 20;
const MAX_AUDIENCES = 20;
const MIN_SECONDS = 60;

/**
 * Reads the file of `--machine-issuers`.
 *
 * @param file empty for no issuers
 * @throws ConfigError with every problem
 */
export function readMachineIssuers(file: string): readonly MachineIssuer[] {
  if (file === "") return [];
  const problem = (text: string) => `--machine-issuers ${file}: ${text}`;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ConfigError([problem(`cannot be read as JSON (${(error as Error).message})`)]);
  }
  const top = new Fields(value, "", ["issuers"]);
  const list = top.list("issuers");
  const read = list.map((each, index) => readIssuerOf(each, `issuers[${index}]`));
  const names = read.map(({ issuer }) => issuer.issuer);
  const problems = [...top.problems, ...read.flatMap((each) => each.problems)];
  if (list.length > MAX_ISSUERS) problems.push(`issuers: at most ${MAX_ISSUERS}`);
  if (new Set(names).size < names.length) problems.push("issuers: every issuer must be another one");
  if (problems.length > 0) throw new ConfigError(problems.map(problem));
  return read.map(({ issuer }) => issuer);
}

function readIssuerOf(value: unknown, place: string) {
  const known = ["issuer", "audiences", "maxSeconds", "outliveToken", "privateAddresses"];
  const fields = new Fields(value, place, known);
  const audiences = fields.list("audiences").map(String);
  if (audiences.length === 0 || audiences.length > MAX_AUDIENCES)
    fields.complain("audiences", `must list 1 to ${MAX_AUDIENCES} audiences`);
  if (!audiences.every((each) => /^[!-~]{1,256}$/.test(each)))
    fields.complain("audiences", "must be texts of 1 to 256 characters without blanks");
  const issuer: MachineIssuer = {
    issuer: readIssuer(fields),
    audiences,
    maxSeconds: fields.integer(
      "maxSeconds",
      MIN_SECONDS,
      MACHINE_TOKEN_MAX_SECONDS,
      MACHINE_TOKEN_MAX_SECONDS,
    ),
    mayOutlive: fields.flag("outliveToken", false),
    allowPrivateAddresses: fields.flag("privateAddresses", false),
  };
  return { issuer, problems: fields.problems };
}
