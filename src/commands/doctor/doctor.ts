import { type Config, ConfigError, readConfig } from "../../config/config.ts";
import type { Flags, Terminal } from "../definitions/command-line.ts";
import { checkAddress } from "./check-address.ts";
import { checkData } from "./check-data.ts";
import { checkFolder } from "./check-folder.ts";
import { checkDisk, checkIsolation, checkKeys, checkSettings } from "./check-machine.ts";
import { type Finding, note, reportOf, wrong } from "./finding.ts";

/** The result of `chartroom doctor`. */
export interface Diagnosis {
  readonly isWell: boolean;
  /** A line for each finding, for the person at the terminal. */
  readonly text: string;
}

/**
 * Checks everything that a server with these settings needs, and gives advice about problems. Needs no server, does
 * not disturb a running one, and changes nothing.
 */
export async function diagnose(flags: Flags, terminal: Terminal, now: () => number): Promise<Diagnosis> {
  const findings = await findAll(flags, terminal, now);
  return { isWell: findings.every(({ level }) => level !== "wrong"), text: reportOf(findings) };
}

async function findAll(flags: Flags, terminal: Terminal, now: () => number): Promise<Finding[]> {
  let config: Config;
  try {
    config = readConfig(flags, terminal.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const others = note("settings", "nothing else was looked at", "run this again when they can be used");
    return [...error.problems.map((problem) => wrong("settings", problem)), others];
  }
  const settings = checkSettings(config, now());
  const folder = checkFolder(config);
  const address = await checkAddress(config);
  // Do not report the content of an unusable folder as another problem.
  if (folder.some(({ level }) => level === "wrong") && !config.databaseUrl)
    return [...settings, ...address, ...folder];
  const { findings: keys, ids: keyIds } = checkKeys(config);
  return [
    ...settings,
    ...address,
    ...folder,
    ...(await checkDisk(config)),
    ...keys,
    ...(await checkData({ config, now, keyIds })),
    ...(await checkIsolation(config, terminal)),
  ];
}
