import { X509Certificate } from "node:crypto";
import { accessSync, constants, readFileSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Config, ConfigError, keyFileOf } from "../../config/config.ts";
import { diskFloorBytesOf } from "../../config/maintenance-settings.ts";
import { readSecrets } from "../../key-file.ts";
import { keysFrom } from "../../keys.ts";
import { createLog } from "../../log.ts";
import { diskProblem } from "../../machine-checks.ts";
import { DATABASE_FILE } from "../../store/sqlite/database-file.ts";
import type { Terminal } from "../definitions/command-line.ts";
import { chooseLocalIsolation } from "../local-runner.ts";
import { checkServeSettings } from "../preflight.ts";
import { StartError } from "../start-error.ts";
import { type Finding, note, ok, wrong } from "./finding.ts";

const DAY_MS = 86_400_000;
/** A certificate that ends sooner is reported. */
const CERTIFICATE_NOTICE_DAYS = 14;

/** Looks at what settings name on this machine, the certificate among it. @param now milliseconds since 1970 UTC */
export function lookAtSettings(config: Config, now: number): Finding[] {
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
    return [wrong("settings", text, "put a new one there and restart the server")];
  }
  if (ends !== undefined && ends - now < CERTIFICATE_NOTICE_DAYS * DAY_MS) {
    const text = `the certificate ${config.tlsCert} ends at ${new Date(ends).toISOString()}`;
    return [note("settings", text, "renew it before that")];
  }
  return [ok("settings", "they can be used")];
}

/** File systems, by their magic numbers, on which the engine's locks and shared memory do not hold. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: "NFS",
  4283649346: "CIFS",
  4266872130: "SMB",
  12805120: "Ceph",
};
const IN_MEMORY = 0x01021994;

/** Files of the folder, each of which the server writes. */
const OWN_FILES = [DATABASE_FILE, `${DATABASE_FILE}-wal`, `${DATABASE_FILE}-shm`, "server.lock", "key.json"];

/** Looks at the data folder itself, not at what is in its files. */
export function lookAtFolder({ dataDir, databaseUrl }: Config): Finding[] {
  const found = statSync(dataDir, { throwIfNoEntry: false });
  const elsewhere =
    "name the one of the server with --data-dir, or mount its disk; for a new installation start the server";
  if (!found) return [wrong("data folder", `there is no ${dataDir}`, elsewhere)];
  if (!found.isDirectory()) return [wrong("data folder", `${dataDir} is a file`, elsewhere)];
  const findings = [...accessFindings(dataDir, found), ...ownerFindings(dataDir, found)];
  if ((found.mode & 0o077) !== 0)
    findings.push(note("data folder", `others may look into ${dataDir}`, `chmod 700 ${dataDir}`));
  if (!databaseUrl) findings.push(...fileSystemFindings(dataDir));
  return findings.some(({ level }) => level === "wrong")
    ? findings
    : [ok("data folder", `${dataDir} can be used`), ...findings];
}

function accessFindings(dataDir: string, { uid }: Stats): Finding[] {
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return [];
  } catch (error) {
    const isReadOnly = (error as NodeJS.ErrnoException).code === "EROFS";
    return [
      isReadOnly
        ? wrong("data folder", `${dataDir} is on a file system that is read-only`, "mount it to be written")
        : wrong(
            "data folder",
            `this user may not write ${dataDir}`,
            `run this as its owner, the user ${uid}`,
          ),
    ];
  }
}

function ownerFindings(dataDir: string, { uid }: Stats): Finding[] {
  const others = OWN_FILES.filter((name) => {
    const file = statSync(join(dataDir, name), { throwIfNoEntry: false });
    return file !== undefined && file.uid !== uid;
  });
  if (others.length === 0) return [];
  const text = `${others.join(" and ")} in ${dataDir} ${others.length === 1 ? "belongs" : "belong"} to another user than the folder`;
  return [
    wrong("data folder", text, `chown them to the user ${uid}, or the folder to the user of the server`),
  ];
}

function fileSystemFindings(dataDir: string): Finding[] {
  const { type } = statfsSync(dataDir);
  const network = NETWORK_FILE_SYSTEMS[type];
  if (network !== undefined) {
    const text = `${dataDir} is on a network file system (${network}), where the database can be damaged`;
    return [
      wrong(
        "data folder",
        text,
        "move it to a disk of this machine, or the data to PostgreSQL (chartroom move)",
      ),
    ];
  }
  if (type !== IN_MEMORY) return [];
  const text = `${dataDir} is in memory: it is lost when this machine restarts`;
  return [note("data folder", text, "move it to a disk")];
}

/** Looks at the disk of the data folder. */
export async function lookAtDisk(config: Config): Promise<Finding[]> {
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

/** Looks at the key file. @returns the ids of its keys too, when it can be read */
export function lookAtKeys(config: Config): {
  readonly findings: readonly Finding[];
  readonly ids: readonly string[] | undefined;
} {
  const file = keyFileOf(config);
  const found = statSync(file, { throwIfNoEntry: false });
  const restore =
    "put back the key file that was kept apart from the backups: without it no secret can be read";
  if (!found) return { findings: [wrong("keys", `there is no key file ${file}`, restore)], ids: undefined };
  try {
    const { ids } = keysFrom(...readSecrets(file));
    const isOpen = (found.mode & 0o007) !== 0;
    const findings = isOpen
      ? [wrong("keys", `every user of this machine may read or write ${file}`, `chmod 600 ${file}`)]
      : [ok("keys", `${file} holds ${ids.length} ${ids.length === 1 ? "key" : "keys"}`)];
    return { findings, ids };
  } catch (error) {
    return { findings: [wrong("keys", (error as Error).message, restore)], ids: undefined };
  }
}

/** Tries what would keep the work of the server's own runner in. */
export async function lookAtIsolation(config: Config, terminal: Terminal): Promise<Finding[]> {
  if (!config.localRunner) return [ok("isolation", "the server runs no work itself (--local-runner)")];
  try {
    const { name } = await chooseLocalIsolation(config, terminal, createLog("silent"));
    if (name !== "none") return [ok("isolation", `work is kept in by ${name}`)];
    const text = "the work of the server's own runner is not isolated";
    return [
      note("isolation", text, "install bubblewrap and leave --isolation at auto; see docs/isolation.md"),
    ];
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return [wrong("isolation", error.message)];
  }
}
