import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { type Config, ConfigError, keyFileOf } from "../../config/config.ts";
import { diskFloorBytesOf } from "../../config/maintenance-settings.ts";
import { isOpenToAll, readSecrets } from "../../key-file.ts";
import { keysFrom } from "../../keys.ts";
import { createLog } from "../../log.ts";
import { diskProblem } from "../../machine-checks.ts";
import type { Terminal } from "../definitions/command-line.ts";
import { checkLocalRunner, chooseLocalIsolation } from "../local-runner.ts";
import { checkServeSettings } from "../preflight.ts";
import { StartError } from "../start-error.ts";
import { type Finding, note, ok, wrong } from "./finding.ts";

const DAY_MS = 86_400_000;
/** A certificate that expires sooner is reported. */
const CERTIFICATE_NOTICE_DAYS = 14;

/** Checks what the settings name on this machine, including the certificate. @param now milliseconds since 1970 UTC */
export function checkSettings(config: Config, now: number): Finding[] {
  try {
    checkServeSettings(config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((problem) => wrong("settings", problem));
  }
  const ends =
    config.tlsCert === ""
      ? undefined
      : new X509Certificate(readFileSync(config.tlsCert)).validToDate.getTime();
  if (ends !== undefined && ends <= now) {
    const text = `the certificate ${config.tlsCert} ended at ${new Date(ends).toISOString()}`;
    return [wrong("settings", text, "put a new one there; a running server takes it within 10 seconds")];
  }
  if (ends !== undefined && ends - now < CERTIFICATE_NOTICE_DAYS * DAY_MS) {
    const text = `the certificate ${config.tlsCert} ends at ${new Date(ends).toISOString()}`;
    return [note("settings", text, "renew it before that")];
  }
  return [ok("settings", "they can be used")];
}

/** Checks the disk of the data folder. */
export async function checkDisk(config: Config): Promise<Finding[]> {
  if (!statSync(config.dataDir, { throwIfNoEntry: false })) return [];
  const { bavail, bsize, files, ffree } = statfsSync(config.dataDir);
  const advice =
    "free some, or make it larger; the database is largest, then come backups in the same folder";
  const low = await diskProblem({ dataDir: config.dataDir, diskFloorBytes: diskFloorBytesOf(config) });
  if (low !== undefined) return [wrong("disk", low, advice)];
  if (files > 0 && ffree === 0)
    return [wrong("disk", "the disk of the data folder can hold no further files", "delete some")];
  return [ok("disk", `${Math.floor((bavail * bsize) / 1024 ** 2)} MiB are free`)];
}

/** Checks the key file. @returns also the ids of its keys if it can be read */
export function checkKeys(config: Config): {
  readonly findings: readonly Finding[];
  readonly ids: readonly string[] | undefined;
} {
  const file = keyFileOf(config);
  const restore =
    "put back the key file that was kept apart from the backups: without it no secret can be read";
  if (!existsSync(file))
    return { findings: [wrong("keys", `there is no key file ${file}`, restore)], ids: undefined };
  try {
    const { ids } = keysFrom(...readSecrets(file));
    const findings = isOpenToAll(file)
      ? [wrong("keys", `every user of this machine may read or write ${file}`, `chmod 600 ${file}`)]
      : [ok("keys", `${file} holds ${ids.length} ${ids.length === 1 ? "key" : "keys"}`)];
    return { findings, ids };
  } catch (error) {
    return { findings: [wrong("keys", (error as Error).message, restore)], ids: undefined };
  }
}

/** Tries the isolation of the server's own runner. */
export async function checkIsolation(config: Config, terminal: Terminal): Promise<Finding[]> {
  if (!config.localRunner) return [ok("isolation", "the server runs no work itself (--local-runner)")];
  try {
    await checkLocalRunner(config, terminal);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return [wrong("local runner", error.message)];
  }
  try {
    const { name } = await chooseLocalIsolation(config, terminal, createLog("silent"));
    if (name !== "none") return [ok("isolation", `work is isolated by ${name}`)];
    const text = "the work of the server's own runner is not isolated";
    return [
      note("isolation", text, "install bubblewrap and leave --isolation at auto; see docs/isolation.md"),
    ];
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return [wrong("isolation", error.message)];
  }
}
