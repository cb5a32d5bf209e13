import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import packageJson from "../../package.json" with { type: "json" };
import { type Config, ConfigError, keyFileOf } from "../config/config.ts";
import { readMachineIssuers } from "../config/machine-issuers.ts";
import { quotaBytesOf } from "../config/maintenance-settings.ts";
import { readOtlpHeaders } from "../config/otlp-headers.ts";
import { readSignInProviders, type SignInProvider } from "../config/sign-in-providers.ts";
import { isOpenToAll } from "../key-file.ts";
import { createLog, echoOnStandardError, type Log } from "../log.ts";
import { type LogFile, openLogFile } from "../log-file.ts";
import { SpanMeasures } from "../metrics/span-measures.ts";
import { buildServer, type Server } from "../server.ts";
import {
  findOrganization,
  findUnrecordedOrganizations,
  hasOrganization,
  recordInInstallation,
} from "../store/identity/organization.ts";
import { findNewestAuditTime } from "../store/record/audit-log.ts";
import { type Store, SYSTEM, type WriteTransaction } from "../store/store.ts";
import type { RunningService, Terminal } from "./definitions/command-line.ts";
import { deliverFirstTokens, type FirstTokens, firstTokens, NO_ORGANIZATION } from "./first-start.ts";
import { makeFolder } from "./folders/file-access.ts";
import { toListenError } from "./listen-error.ts";
import {
  lockData,
  openData,
  placeOf,
  requireBeginning,
  requireKeys,
  requireKnownDatabase,
} from "./open-data.ts";
import { checkServeSettings, isLoopback } from "./preflight.ts";
import { keepServerUrl } from "./server-url.ts";
import { StartError } from "./start-error.ts";
import { atMostOnceAMinute, healthFigures, serveTelemetry, traceCalls } from "./telemetry/telemetry.ts";

/**
 * Makes V8 allocate all objects in the young generation. Otherwise V8 learns which allocation sites make long-lived
 * objects, and from then on allocates their objects in the old generation. After one burst with many waiting calls,
 * it would do so for the rows of all later calls, until the server ends.
 */
const NO_PRETENURING = "--no-allocation-site-pretenuring";

/**
 * Limits how far the old generation may outgrow its live objects when reads wait for a database. Their garbage ends
 * up there, and Node would let it grow to four times the live size.
 */
const HEAP_GROWTH = "--heap-growing-percent=50";

/**
 * Starts the server and prints its URL. The first start creates an organization with its administrator and shows one
 * access token.
 *
 * @throws ConfigError or StartError when it cannot start
 */
export async function serve(given: Config, terminal: Terminal): Promise<RunningService> {
  // Loaded on demand: hardly any start uses sample data.
  const sample = given.sampleData ? await import("./sample/start-sample.ts") : undefined;
  const config = sample?.sampleSettings(given) ?? given;
  checkServeSettings(config);
  const providers = readSignInProviders(config.signInProviders, terminal.env);
  const machineIssuers = readMachineIssuers(config.machineIssuers);
  const otlpHeaders = readOtlpHeaders(config.otlpHeadersFile, terminal.env);
  makeFolder(config.dataDir);
  setFlagsFromString(NO_PRETENURING);
  if (config.databaseUrl) setFlagsFromString(HEAP_GROWTH);
  const lock = config.databaseUrl ? undefined : await lockData(config);
  if (!lock && !config.databaseUrl)
    throw new StartError(`another server already uses the data folder ${config.dataDir}`);
  const logFile = openLog(config);
  const log = logFile
    ? createLog(config.logLevel, logFile.write, true)
    : createLog(config.logLevel, terminal.writeLog);
  const local = config.localRunner ? await import("./local-runner.ts") : undefined;
  // Before anything is created or shown once, because the start may fail here.
  const prepare = async () => {
    await local?.checkLocalRunner(config, terminal);
    await requireKnownDatabase(config);
    return local?.chooseLocalIsolation(config, terminal, log);
  };
  const isolation = await prepare().catch((error) => {
    lock?.release();
    throw error;
  });
  const onMigration = (migration: string) =>
    log.info({ migration }, "bringing the data to this release; with a million projects it takes a minute");
  const onMigratedRows = (table: string, done: number, total: number) =>
    log.info({ table, done, total }, "rewriting rows of an earlier release");
  const { store, keys } = await openData(config, {
    onMigration,
    onMigratedRows,
    quotaBytes: quotaBytesOf(config),
    presence: "server",
  }).catch((error) => {
    lock?.release();
    throw error;
  });
  const stopStore = async () => {
    await store.close();
    lock?.release();
  };
  try {
    await warnIfClockWasSetBack(store, log);
    await recordOrganizations(store);
    // Before the server is ready: after that, an unavailable database does not end it.
    const isFirstStart = !(await hasOrganization(store.reader));
    if (isFirstStart && existsSync(config.firstTokenFile))
      throw new StartError(`--first-token-file ${config.firstTokenFile} exists: name a file that does not`);
    if (isFirstStart) await requireBeginning(config, store.reader);
    // If another server has created the first rows since, there were no rows to compare the keys with before.
    if (config.databaseUrl && !isFirstStart) await requireKeys(config, store, keys);
    await sample?.requireFreshData(store.reader, config);
    await requireOrganizations(store, providers);
    const spans = new SpanMeasures();
    const traces = await traceCalls(config, store, { log, spans, otlpHeaders });
    const figures = healthFigures(config, terminal);
    const parts = { store, keys, log, providers, machineIssuers, traces, otlpHeaders, now: Date.now };
    const server = buildServer(config, { ...parts, figures: figures.sources });
    const url = await server.listen().catch((error) => {
      throw toListenError(config, error);
    });
    if (!isFirstStart) keepServerUrl(config.dataDir, url);
    const sources = [...server.metrics, spans.metrics];
    const telemetry = await serveTelemetry(config, sources, { log, terminal, otlpHeaders });
    log.info({ version: packageJson.version, url, dataDir: config.dataDir }, "listening");
    if (!isLoopback(config.host) && config.tlsCert === "") {
      log.warn(
        { host: config.host },
        "other machines reach the server without TLS: tokens travel in the clear unless a proxy in front of it speaks TLS; see --tls-cert",
      );
    }
    warnIfCertificateEnded(config, log);
    warnIfKeysAreOpen(keyFileOf(config), log);
    terminal.print(`Chartroom is ready at ${url}\n`);
    let first: FirstTokens | undefined;
    if (sample && !isFirstStart) {
      first = await sample.createSampleOrganization(store, keys);
      terminal.print(sample.welcome(url, first));
    } else if (isFirstStart) {
      first = await firstTokens(store, keys, sample?.SAMPLE_ORGANIZATION);
      keepServerUrl(config.dataDir, url);
      // An operator who removed the last organization does not want a new one, nor an administrator's token in a
      // service's log.
      if (first !== undefined) {
        const place = placeOf(config);
        log.info({ data: place }, "this is a new installation, since there was no organization");
        terminal.print(await deliverFirstTokens(config.firstTokenFile, place, url, first));
      } else if (!(await hasOrganization(store.reader))) terminal.print(NO_ORGANIZATION);
      // If several servers start at once, another one may have created it, with other keys.
      else await requireKeys(config, store, keys);
    }
    const organizationId = sample && first?.organizationId;
    const machine = { server, url, store, keys, log, terminal, organizationId };
    const localRunner =
      local && isolation ? await local.startLocalRunner(config, { ...machine, isolation }) : undefined;
    const filling =
      first &&
      sample?.startSample(config, { ...first, store, keys, log, terminal, transport: server.transport });
    return {
      reload() {
        logFile?.reopen();
        return reload(config, terminal, { server, store, log });
      },
      async stop() {
        log.info({}, "stopping");
        await filling?.stop();
        // First, while the server still accepts the runner's reports.
        await localRunner?.stop();
        await server.close();
        await traces?.close();
        await telemetry?.close();
        figures.close();
        await stopStore();
        log.info({}, "stopped");
      },
    };
  } catch (error) {
    await stopStore();
    throw error;
  }
}

/** Opens the log file if the settings name one. @throws ConfigError */
function openLog({ logFile: path, logFileSize, logFiles: files }: Config): LogFile | undefined {
  if (path === "") return undefined;
  // On a full disk every line fails.
  const onFailure = atMostOnceAMinute((err) =>
    echoOnStandardError({ err }, "the log file cannot be written or exchanged"),
  );
  try {
    return openLogFile({ path, maxBytes: logFileSize * 1024 * 1024, files, onFailure });
  } catch (error) {
    throw new ConfigError([`--log-file ${path} cannot be written: ${(error as Error).message}`]);
  }
}

/** Reloads the files of the sign-in providers, the issuers and the certificate. Ignores unusable ones. */
async function reload(
  { signInProviders, machineIssuers }: Config,
  { env }: Terminal,
  { server, store, log }: { readonly server: Server; readonly store: Store; readonly log: Log },
): Promise<void> {
  log.info({}, "reading the files of the settings again");
  const unlessWrong = async <T>(what: string, read: () => T | Promise<T>) => {
    try {
      return await read();
    } catch (err) {
      log.error({ err }, `the ${what} were not read again: those before stay in use`);
      return undefined;
    }
  };
  const providers = await unlessWrong("sign-in providers", async () => {
    const found = readSignInProviders(signInProviders, env);
    await requireOrganizations(store, found);
    return found;
  });
  const issuers = await unlessWrong("machine issuers", () => readMachineIssuers(machineIssuers));
  await server.reload({ ...(providers && { providers }), ...(issuers && { machineIssuers: issuers }) });
}

/** Requires that the organization of each sign-in provider exists. @throws StartError */
async function requireOrganizations(store: Store, providers: readonly SignInProvider[]): Promise<void> {
  for (const { id, organizationId } of providers) {
    if (await findOrganization(store.reader, { organizationId })) continue;
    throw new StartError(
      `--sign-in-providers: the provider ${id} names the organization ${organizationId}, which there is not; ` +
        "chartroom organization list shows them, and a first start without providers makes one",
    );
  }
}

/** Warns when the server's certificate has expired and clients will refuse it. */
function warnIfCertificateEnded({ tlsCert }: Config, log: Log): void {
  const ended = tlsCert === "" ? undefined : new X509Certificate(readFileSync(tlsCert)).validToDate;
  if (ended && ended.getTime() <= Date.now())
    log.warn(
      { tlsCert, ended },
      "the TLS certificate has expired, and clients refuse it: replace it; no restart is needed",
    );
}

/** Warns when every user of the machine can read the keys, and with them each credential in the data. */
function warnIfKeysAreOpen(keyFile: string, log: Log): void {
  if (isOpenToAll(keyFile))
    log.warn({ keyFile }, `every user of this machine may read or write the key file: chmod 600 ${keyFile}`);
}

/** Tolerated difference between readings of the machine's clock before it counts as set back. */
const CLOCK_TOLERANCE_MS = 5_000;

/** Warns when the clock was set back: leases, tokens, schedules and ids depend on it. */
async function warnIfClockWasSetBack(store: Store, log: Log): Promise<void> {
  const newest = await findNewestAuditTime(store.reader);
  const behindMs = (newest ?? 0) - Date.now();
  if (behindMs <= CLOCK_TOLERANCE_MS) return;
  log.warn(
    { newestRecord: new Date(newest ?? 0).toISOString(), behindSeconds: Math.round(behindMs / 1000) },
    "the clock of this machine is behind the newest record: set it, as tokens, leases and schedules go by it",
  );
}

/**
 * Records organizations from earlier releases in the installation's chain, where new ones are recorded at creation.
 */
async function recordOrganizations(store: Store): Promise<void> {
  if ((await findUnrecordedOrganizations(store.reader)).length === 0) return;
  const record = async (tx: WriteTransaction) => {
    for (const organization of await findUnrecordedOrganizations(tx.db))
      recordInInstallation(tx, organization);
  };
  await store.write(SYSTEM, "chartroom serve", record, { locks: [null] });
}
