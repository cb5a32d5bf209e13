import { statSync } from "node:fs";
import { join } from "node:path";
import { EventSubscriptionState } from "#gen/service/v1/event_subscription_pb.js";
import { type Config, keyFileOf } from "../../config/config.ts";
import { auditDelay } from "../../domain/record/audit-delay.ts";
import { auditTargetsOf } from "../../sinks/audit-sinks.ts";
import { countInstallation, type InstallationCounts } from "../../store/access/installation-counts.ts";
import { hadOrganization } from "../../store/identity/organization.ts";
import { findAuditLag } from "../../store/record/audit-lag.ts";
import { findNewestAuditTime } from "../../store/record/audit-log.ts";
import { findNamedKeyIds } from "../../store/runner/key-id.ts";
import { DATABASE_FILE } from "../../store/sqlite/database-file.ts";
import { lostData } from "../../store/sqlite/lost-files.ts";
import type { ReadOnlyStore } from "../../store/store.ts";
import { emptiedDataOf } from "../open-data.ts";
import { addressOf, asDatabaseError, hasTables } from "../open-database.ts";
import { hasHadServer, SERVER_URL_FILE } from "../server-url.ts";
import { StartError } from "../start-error.ts";
import { type Finding, note, ok, wrong } from "./finding.ts";

/** Tolerated difference between clocks, or between readings of one clock. */
const CLOCK_TOLERANCE_MS = 5_000;
/** A clock that shows a time before this is wrong: this release did not exist yet. */
const RELEASED_AT = Date.UTC(2026, 0, 1);
/** Silence after which a runner counts as disconnected. A connected one calls at least every ten seconds. */
const RUNNER_SILENCE_MS = 120_000;
/** The advice about paused runners. */
const RESUME = "end their pause by RunnerService/UpdateRunner with RUNNER_PHASE_ACTIVE; see docs/runners.md";
/** A change log above this size is held by a reader that does not end. */
const LONG_LOG_BYTES = 1024 ** 3;

export interface DataCheck {
  readonly config: Config;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
  /** Ids of the keys in the key file; undefined when it cannot be read. */
  readonly keyIds: readonly string[] | undefined;
}

/** Checks the database, and what it says about keys, clock and runners. Changes nothing in it. */
export async function checkData(check: DataCheck): Promise<Finding[]> {
  const { config } = check;
  const findings = config.databaseUrl ? await checkPostgres(check) : await checkFile(config);
  if (findings.some(({ level }) => level === "wrong")) return findings;
  if (config.databaseUrl && !(await hasTables(config))) return [...findings, emptyFinding(config)];
  let store: ReadOnlyStore;
  try {
    store = await openForReading(config);
  } catch (error) {
    return [wrong("database", (error as Error).message)];
  }
  try {
    return [
      ...findings,
      ...(await checkBeginning(store, check)),
      ...(await checkNamedKeys(store, check)),
      ...(await checkClock(store, check)),
      ...(await checkCounts(store, check)),
      ...(await checkExport(store, check)),
    ];
  } finally {
    await store.close();
  }
}

/** Reports a database in which nothing was ever created: its content may have been lost with its change log. */
async function checkBeginning({ reader }: ReadOnlyStore, { config }: DataCheck): Promise<Finding[]> {
  if (await hadOrganization(reader)) return [];
  return [emptyFinding(config)];
}

function emptyFinding(config: Config): Finding {
  if (hasHadServer(config.dataDir)) {
    const { what, advice } = emptiedDataOf(config);
    return wrong("database", what, advice);
  }
  const text = "it is empty: the next start of the server creates an organization, as in a new database";
  const restore = "if there was one before, restore a backup";
  const advice = config.databaseUrl
    ? `${restore}, or correct --database-url`
    : `${restore}; ${DATABASE_FILE}-wal is part of the database`;
  return note("database", text, advice);
}

async function checkExport({ reader }: ReadOnlyStore, { now, config }: DataCheck): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const target of auditTargetsOf(config)) {
    const lag = await findAuditLag(reader, target);
    const delay = auditDelay(lag, now());
    const whatToDo = "the log of the server says why; see docs/operations.md";
    findings.push(
      delay
        ? note("audit export", `${delay} (rows in all: ${lag.rows})`, whatToDo)
        : ok("audit export", `${target} is up to date`),
    );
  }
  return findings;
}

async function openForReading(config: Config): Promise<ReadOnlyStore> {
  if (!config.databaseUrl)
    return (await import("../../store/sqlite/open-read-only.ts")).openReadOnly(config.dataDir);
  const { openReadOnlyDatabase } = await import("../../store/postgres/open-read-only.ts");
  return asDatabaseError(config, () => openReadOnlyDatabase(addressOf(config)));
}

async function checkFile({ dataDir }: Config): Promise<Finding[]> {
  const file = join(dataDir, DATABASE_FILE);
  const lost = lostData(dataDir, SERVER_URL_FILE);
  if (lost) return [wrong("database", lost.what, lost.advice)];
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    const advice =
      "name the data folder of the server with --data-dir, or restore a backup; a new one is made by its first start";
    return [wrong("database", `there is no ${DATABASE_FILE} in ${dataDir}`, advice)];
  }
  const { inspectFile } = await import("../../store/sqlite/inspect-file.ts");
  const { problem, level } = inspectFile(file);
  if (problem !== undefined)
    return [
      wrong(
        "database",
        `${file}: ${problem}`,
        "stop the server, keep a copy of the folder, and restore a backup",
      ),
    ];
  if (level !== undefined) return [wrong("database", level)];
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const mib = (bytes: number) => Math.ceil(bytes / 1024 ** 2);
  const findings = [ok("database", `SQLite, ${mib(size)} MiB, and its pages are whole`)];
  if (log <= LONG_LOG_BYTES) return findings;
  const text = `the log of changes next to it has ${mib(log)} MiB: a program reads the database and never ends its transaction`;
  return [
    ...findings,
    note("database", text, "end other programs that have the file open, and restart the server"),
  ];
}

async function checkPostgres({ config, now }: DataCheck): Promise<Finding[]> {
  const { inspectDatabase } = await import("../../store/postgres/open-read-only.ts");
  try {
    const { release, isReadOnly, problem, aheadMs } = await asDatabaseError(config, () =>
      inspectDatabase(addressOf(config), { connections: 2 * config.databaseConnections + 1, now }),
    );
    const findings = [ok("database", `PostgreSQL ${release}`)];
    if (isReadOnly) {
      const advice = "name the primary in --database-url, or make the database writable";
      findings.push(wrong("database", "the database is read-only, like a standby", advice));
    }
    if (problem !== undefined) {
      const advice = "fix that; servers then continue by themselves; see docs/postgres.md";
      findings.push(wrong("database", `it accepts no changes: ${problem}`, advice));
    }
    if (Math.abs(aheadMs) > CLOCK_TOLERANCE_MS) {
      const text = `the clock of the database is ${Math.round(Math.abs(aheadMs) / 1000)} seconds ${aheadMs > 0 ? "ahead of" : "behind"} that of this machine`;
      findings.push(wrong("clock", text, "keep both right by NTP: tokens, leases and schedules go by them"));
    }
    return findings;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return [wrong("database", error.message)];
  }
}

async function checkNamedKeys({ reader }: ReadOnlyStore, { config, keyIds }: DataCheck): Promise<Finding[]> {
  if (keyIds === undefined) return [];
  const missing = (await findNamedKeyIds(reader)).filter((id) => !keyIds.includes(id));
  if (missing.length === 0) return [];
  const text = `${keyFileOf(config)} is not the file that the data was written with: it lacks the key ${missing.join(" and the key ")}`;
  return [wrong("keys", text, "put back the key file of this data, or name it with --key-file")];
}

async function checkClock({ reader }: ReadOnlyStore, { now }: DataCheck): Promise<Finding[]> {
  const behindMs = Math.max((await findNewestAuditTime(reader)) ?? 0, RELEASED_AT) - now();
  if (behindMs <= CLOCK_TOLERANCE_MS) return [ok("clock", `it is ${new Date(now()).toISOString()}`)];
  const text = `the clock of this machine is ${Math.round(behindMs / 1000)} seconds behind the newest record of the data`;
  return [wrong("clock", text, "set it, and keep it right by NTP: tokens, leases and schedules go by it")];
}

async function checkCounts({ reader }: ReadOnlyStore, check: DataCheck): Promise<Finding[]> {
  const counts = await countInstallation(reader, { now: check.now(), until: check.now() });
  return [...checkRunners(counts, check), ...checkWebhooks(counts)];
}

function checkRunners({ runners, work }: InstallationCounts, { now, config }: DataCheck): Finding[] {
  const { connected, paused, disconnected, oldestSign } = runners;
  const waiting = work.filter(({ isLeased }) => !isLeased).reduce((sum, { count }) => sum + count, 0);
  const silentMs = now() - (oldestSign ?? now());
  const start =
    "start one (chartroom runner, or serve --local-runner), and look at its log; see docs/runners.md";
  if (connected === 0 && waiting > 0) {
    const pieces = waiting === 1 ? "one piece of work waits" : `${waiting} pieces of work wait`;
    if (paused > 0)
      return [wrong("runners", `${pieces}, and all runners that are connected are paused`, RESUME)];
    return [wrong("runners", `${pieces}, and no runner is connected`, start)];
  }
  if (connected === 0 && paused > 0)
    return [note("runners", "all that are connected are paused, so nothing carries out work", RESUME)];
  if (connected === 0 && !config.localRunner)
    return [note("runners", "none is connected, so nothing carries out work", start)];
  const text = `${connected} connected, ${paused > 0 ? `${paused} paused, ` : ""}${disconnected} disconnected`;
  if (silentMs <= RUNNER_SILENCE_MS) return [ok("runners", text)];
  const silent = `${text}, and one has shown no sign of life for ${Math.round(silentMs / 1000)} seconds`;
  return [
    note("runners", silent, "this is so while no server runs; otherwise look at the log of the runner"),
  ];
}

/** Checks event subscriptions; finds nothing when there are none. */
function checkWebhooks({ eventSubscriptions, eventDeliveries }: InstallationCounts): Finding[] {
  const countOf = (state: EventSubscriptionState) =>
    eventSubscriptions.find(({ of }) => of === state)?.count ?? 0;
  const active = countOf(EventSubscriptionState.ACTIVE);
  const paused = countOf(EventSubscriptionState.PAUSED);
  const given = countOf(EventSubscriptionState.PAUSED_BY_SERVER);
  if (active + paused + given === 0) return [];
  const counts = [
    `${active} active`,
    paused > 0 && `${paused} paused`,
    given > 0 && `${given} paused by the server`,
  ];
  const { waiting } = eventDeliveries;
  const text = `${counts.filter(Boolean).join(", ")}; ${waiting === 1 ? "one event waits" : `${waiting} events wait`}`;
  if (paused + given === 0) return [ok("webhooks", text)];
  const advice =
    "chartroom webhook list shows which, and webhook ledger why; webhook resume goes on with those whose targets take events again";
  return [note("webhooks", text, advice)];
}
