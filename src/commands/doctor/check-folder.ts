import {
  accessSync,
  constants,
  lstatSync,
  readdirSync,
  readlinkSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import type { Config } from "../../config/config.ts";
import { DATABASE_FILE } from "../../store/sqlite/database-file.ts";
import { type Finding, note, ok, wrong } from "./finding.ts";

/** File systems, by magic number, on which the engine's locks and shared memory do not work. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  26985: "NFS",
  4283649346: "CIFS",
  4266872130: "SMB",
  12805120: "Ceph",
};
const IN_MEMORY = 0x01021994;

/** Files in the folder that the server writes while it runs. */
const WRITTEN_FILES = [DATABASE_FILE, `${DATABASE_FILE}-wal`, `${DATABASE_FILE}-shm`, "server.lock"];
const OWN_FILES = [...WRITTEN_FILES, "key.json"];

const OF_THE_SERVER =
  "name the one of the server with --data-dir, or mount its disk; for a new installation start the server";

/** Checks the data folder itself, not the content of its files. */
export function checkFolder({ dataDir, databaseUrl }: Config): Finding[] {
  let found: Stats | undefined;
  try {
    found = statSync(dataDir, { throwIfNoEntry: false });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "EACCES")
      return [wrong("data folder", `${dataDir} cannot be used: ${message}`, OF_THE_SERVER)];
    const text = `this user may not look into the folder that ${dataDir} is in`;
    return [wrong("data folder", text, "run this as the user of the server")];
  }
  if (!found) return [wrong("data folder", missingText(dataDir), OF_THE_SERVER)];
  if (!found.isDirectory()) return [wrong("data folder", `${dataDir} is a file`, OF_THE_SERVER)];
  const access = accessFindings(dataDir, found);
  // The content of a folder that this user may not enter cannot be checked.
  if (access.length > 0) return access;
  if (!databaseUrl && readdirSync(dataDir).length === 0)
    return [wrong("data folder", `${dataDir} is empty`, OF_THE_SERVER)];
  const findings = [...fileFindings(dataDir), ...ownerFindings(dataDir, found)];
  if ((found.mode & 0o077) !== 0)
    findings.push(note("data folder", `others may look into ${dataDir}`, `chmod 700 ${dataDir}`));
  if (!databaseUrl) findings.push(...fileSystemFindings(dataDir));
  return findings.some(({ level }) => level === "wrong")
    ? findings
    : [ok("data folder", `${dataDir} can be used`), ...findings];
}

function missingText(dataDir: string): string {
  const isLink = lstatSync(dataDir, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink
    ? `${dataDir} is a link to ${readlinkSync(dataDir)}, which is not there`
    : `there is no ${dataDir}`;
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

/** Reports entries that are named like the server's files but are not files, or cannot be changed. */
function fileFindings(dataDir: string): Finding[] {
  const files = OWN_FILES.flatMap((name) => {
    const file = statSync(join(dataDir, name), { throwIfNoEntry: false });
    return file ? [{ name, isFile: file.isFile() }] : [];
  });
  const others = files.filter(({ isFile }) => !isFile).map(({ name }) => name);
  if (others.length > 0) {
    const text = `${others.join(" and ")} in ${dataDir} ${others.length === 1 ? "is no file" : "are no files"}`;
    return [wrong("data folder", text, "move it away, and put the server's file there if there was one")];
  }
  const kept = files
    .map(({ name }) => name)
    .filter((name) => WRITTEN_FILES.includes(name) && !isChangeable(join(dataDir, name)));
  if (kept.length === 0) return [];
  const text = `nobody can change ${kept.join(" and ")} in ${dataDir}`;
  return [wrong("data folder", text, "look at its attributes (lsattr, chattr -i) and at its mounts")];
}

/** Returns whether the system lets anyone change a file. Ignores its mode, which the server sets. */
function isChangeable(file: string): boolean {
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
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
