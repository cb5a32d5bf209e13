import { readFileSync } from "node:fs";
import type { Transport } from "@connectrpc/connect";
import type { Config } from "./config/config.ts";
import { pageTokens } from "./domain/page.ts";
import { createIntake } from "./http/body/body-reader.ts";
import { createListener } from "./http/connection/listener.ts";
import { createEntry } from "./http/dispatch/dispatch.ts";
import { createFront } from "./http/dispatch/middleware.ts";
import { createWebhookEntry } from "./http/dispatch/webhook.ts";
import { OutputBudget, type SlowReader } from "./http/output/output-budget.ts";
import { outputLimits } from "./http/output/output-limits.ts";
import { implementations } from "./implementations.ts";
import { stopTimedOutActions } from "./jobs/action-time.ts";
import { fireAgentTimers } from "./jobs/agent-timers.ts";
import { removeExpiredAnswers } from "./jobs/answer-expiry.ts";
import { archiveEnvironments } from "./jobs/archive.ts";
import { deleteArchivedEnvironments } from "./jobs/deletion.ts";
import { pruneEvents } from "./jobs/event-pruning.ts";
import { createExpansion } from "./jobs/executions.ts";
import { endExpiredLeases } from "./jobs/leases.ts";
import { stopExpiredEnvironments } from "./jobs/lifetime.ts";
import { refreshPopularity } from "./jobs/popularity.ts";
import { makeDuePrebuilds, stopTimedOutPrebuilds } from "./jobs/prebuilds.ts";
import { removeDeletedProjects } from "./jobs/project-removal.ts";
import { markSilentRunners } from "./jobs/runner-silence.ts";
import { fireSchedules } from "./jobs/schedules.ts";
import { continueStops } from "./jobs/stops.ts";
import { watchStorage } from "./jobs/storage.ts";
import { startJobs } from "./jobs/ticker.ts";
import { removeExpiredTokens } from "./jobs/token-expiry.ts";
import { pruneTriggers } from "./jobs/trigger-pruning.ts";
import { removeDeletedWorkflows } from "./jobs/workflow-removal.ts";
import type { Keys } from "./keys.ts";
import type { Log } from "./log.ts";
import { idMaker } from "./new-id.ts";
import { createAuthentication, createRevalidation } from "./rpc/access/authentication.ts";
import { revokeStreams } from "./rpc/access/revoked-streams.ts";
import { checkRequests, createCheck } from "./rpc/check.ts";
import type { ReportFault } from "./rpc/error/error.ts";
import { errorInterceptor } from "./rpc/error/error-interceptor.ts";
import { idempotencyKeys } from "./rpc/idempotency-key.ts";
import { createInMemoryTransport } from "./rpc/in-memory.ts";
import { outputLimit } from "./rpc/output-limit.ts";
import { lowerCaseIds } from "./rpc/request/lower-case-ids.ts";
import { queryPagination } from "./rpc/request/query-pagination.ts";
import { requireKnownFields } from "./rpc/request/unknown-fields.ts";
import { createRoutes } from "./rpc/routes.ts";
import { sourceControl } from "./scm/source-control.ts";
import { CHECK_EVERY_MS, createAccountSignals } from "./services/call/account-signals.ts";
import { createStreamPlaces } from "./services/call/stream-slots.ts";
import type { Store } from "./store/store.ts";
import { createUnaryPath } from "./unary/unary-path.ts";

/** Accepted requests get this long to finish when the server is told to stop. */
const DRAIN_MS = 10_000;

const DAY_MS = 24 * 3600 * 1000;

/** How often events that are too old are removed. */
const EVENT_PRUNING_MS = 3600 * 1000;

/** How often environments are looked through for the end of their time; policies count in days. */
const ENVIRONMENT_AGE_MS = 60_000;

/** How often leases that ran out are looked for. */
const LEASE_EXPIRY_MS = 1_000;

/** How often runners are looked for that fell silent. */
const RUNNER_SILENCE_MS = 5_000;

/** How often executions are looked through for what waits for them or runs too long. */
const WORK_MS = 1_000;

/** How often workflows that are pending deletion are looked through for those whose executions have ended. */
const WORKFLOW_REMOVAL_MS = 1_000;

/** How often time triggers are looked through: they are exact to this. */
const SCHEDULES_MS = 1_000;

/** How often timers of agent runs are looked through: they are exact to this. */
const AGENT_TIMERS_MS = 1_000;

/** How often projects are looked through for prebuilds that are due, and prebuilds for those whose time is over. */
const PREBUILDS_MS = 1_000;

/** How often a database that took no change is asked again; the server is ready again so soon after it does. */
const STORAGE_MS = 1_000;

/** How often entries of the ledger of triggers, and ids of deliveries, that are too old are removed. */
const TRIGGER_PRUNING_MS = 600_000;

/** How often slow readers are looked for. */
const PASS_MS = 500;

/** How often kept answers that are too old are removed; until then they are ignored. */
const ANSWER_EXPIRY_MS = 600_000;

export interface ServerDependencies {
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number;
}

export interface Server {
  /** Begins to take requests; resolves with the URL under which clients reach it. */
  listen(): Promise<string>;
  /** For clients in this process; it works as long as the server does. */
  readonly transport: Transport;
  /** Readiness turns red, accepted requests finish (10 s at most), streams end, jobs stop. The store stays open. */
  close(): Promise<void>;
}

/** Puts the parts together; nothing listens yet. */
export function build(config: Config, deps: ServerDependencies): Server {
  const { store, keys, log } = deps;
  const draining = new AbortController();
  const unreadiness = () => (draining.signal.aborted ? "the server is shutting down" : store.problem());
  const readiness = { isReady: () => unreadiness() === undefined, draining: draining.signal };
  const newId = idMaker(deps.now);
  const report: ReportFault = (err, call) => log.error({ ...call, err }, "internal error");
  const check = createCheck();
  let { baseUrl } = config;
  const streamPlaces = createStreamPlaces({
    perToken: config.streamsPerToken,
    perOrganization: config.streamsPerOrganization,
    inAll: config.streams,
  });
  const accountSignals = createAccountSignals(createRevalidation({ store, now: deps.now }));
  const routes = createRoutes({
    implementations: implementations({
      store,
      keys,
      pageTokens: pageTokens(keys.pageMac),
      check,
      baseUrl: () => baseUrl,
      now: deps.now,
      allowOrganizationCreation: config.allowOrganizationCreation,
      countLimit: config.countLimit,
      pageBytes: config.pageBytes,
      accountSignals,
      draining: draining.signal,
      leaseMs: config.leaseDuration * 1000,
      onUnusableWork: (work, err) => log.error({ ...work, err }, "work cannot begin and was set aside"),
    }),
    // Errors outermost, so that what the others throw is told too; ids in lower case before their form is judged;
    // innermost what a repetition is told by, which must see every request in its last form.
    interceptors: [
      errorInterceptor(report),
      outputLimit(draining.signal),
      revokeStreams(accountSignals, streamPlaces),
      queryPagination,
      requireKnownFields,
      lowerCaseIds,
      checkRequests(check),
      idempotencyKeys(keys.beginRequestMacs),
    ],
    readiness,
    allowUnknownFields: config.allowUnknownFields,
  });
  const gate = createAuthentication({
    store,
    keys,
    now: deps.now,
    onNoteFailure: (err) => log.warn({ err }, "the last use of a token was not written"),
  });
  const intake = createIntake(config);
  const entry = createEntry({
    routes,
    gate,
    readiness,
    unaryPath: config.fastPath === "on" ? createUnaryPath(report, intake.parseBeside) : undefined,
    ...intake,
    maxTimeoutMs: config.maxTimeout * 1000,
    report,
  });
  const webhook = createWebhookEntry({
    store,
    keys,
    now: deps.now,
    gate,
    readiness,
    report,
    onRecordFailure: (err) => log.warn({ err }, "a bad signature was not entered in the ledger"),
  });
  const onCut = (reader: SlowReader) => log.warn(reader, "a slow reader was cut off");
  const budget = new OutputBudget(outputLimits(config), onCut);
  const listener = createListener({
    host: config.host,
    port: config.port,
    ...(config.tlsCert && { tls: { cert: readFileSync(config.tlsCert), key: readFileSync(config.tlsKey) } }),
    handle: createFront({
      entry,
      webhook,
      unreadiness,
      corsOrigins: config.corsOrigins,
      newId,
      budget,
      log: (line) => log.info(line, "call"),
    }),
  });
  let jobs: ReturnType<typeof startJobs> | undefined;
  return {
    transport: createInMemoryTransport({ routes, gate, readiness, newId }),
    async listen() {
      const { host, port } = await listener.listen();
      baseUrl ||= `${config.tlsCert ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
      jobs = startJobs(
        [
          {
            name: "popularity",
            everyMs: config.popularityInterval * 1000,
            run: () => refreshPopularity(store),
          },
          {
            name: "project-removal",
            everyMs: config.removalInterval * 1000,
            run: () => removeDeletedProjects(store),
          },
          {
            name: "token-expiry",
            everyMs: config.removalInterval * 1000,
            run: () => removeExpiredTokens(store, deps.now()),
          },
          {
            name: "workflow-removal",
            everyMs: WORKFLOW_REMOVAL_MS,
            run: () => removeDeletedWorkflows(store),
          },
          { name: "stops", everyMs: WORK_MS, run: () => continueStops(store, draining.signal) },
          { name: "slow-readers", everyMs: PASS_MS, run: async () => budget.pass(PASS_MS) },
          { name: "cut-off-streams", everyMs: CHECK_EVERY_MS, run: () => accountSignals.check() },
          {
            name: "event-pruning",
            everyMs: EVENT_PRUNING_MS,
            run: () => pruneEvents(store, deps.now() - config.eventRetention * DAY_MS),
          },
          { name: "archive", everyMs: ENVIRONMENT_AGE_MS, run: () => archiveEnvironments(store, deps.now()) },
          {
            name: "deletion",
            everyMs: ENVIRONMENT_AGE_MS,
            run: () => deleteArchivedEnvironments(store, deps.now()),
          },
          {
            name: "lifetime",
            everyMs: ENVIRONMENT_AGE_MS,
            run: () => stopExpiredEnvironments(store, deps.now()),
          },
          { name: "leases", everyMs: LEASE_EXPIRY_MS, run: () => endExpiredLeases(store, deps.now()) },
          {
            name: "runner-silence",
            everyMs: RUNNER_SILENCE_MS,
            run: () => markSilentRunners(store, deps.now()),
          },
          {
            name: "executions",
            everyMs: WORK_MS,
            run: createExpansion({
              store,
              keys,
              scm: sourceControl({
                allowPrivateAddresses: config.allowPrivateRemotes,
                plainHttpHosts: config.plainHttpHosts,
              }),
              now: deps.now,
              draining: draining.signal,
            }),
          },
          { name: "action-time", everyMs: WORK_MS, run: () => stopTimedOutActions(store, deps.now()) },
          { name: "schedules", everyMs: SCHEDULES_MS, run: () => fireSchedules(store, deps.now()) },
          { name: "agent-timers", everyMs: AGENT_TIMERS_MS, run: () => fireAgentTimers(store, deps.now()) },
          { name: "prebuilds", everyMs: PREBUILDS_MS, run: () => makeDuePrebuilds(store, deps.now()) },
          {
            name: "prebuild-time",
            everyMs: PREBUILDS_MS,
            run: () => stopTimedOutPrebuilds(store, deps.now()),
          },
          {
            name: "trigger-pruning",
            everyMs: TRIGGER_PRUNING_MS,
            run: () => pruneTriggers(store, deps.now()),
          },
          { name: "storage", everyMs: STORAGE_MS, run: watchStorage(store, log) },
          { name: "answer-expiry", everyMs: ANSWER_EXPIRY_MS, run: () => removeExpiredAnswers(store) },
        ],
        log,
      );
      return baseUrl;
    },
    async close() {
      draining.abort();
      await Promise.all([listener.drain(DRAIN_MS), jobs?.stop()]);
      await intake.close();
    },
  };
}
