import { readFileSync } from "node:fs";
import type { Transport } from "@connectrpc/connect";
import type { Config } from "./config/config.ts";
import { createPageTokens } from "./domain/page.ts";
import { createBodyReader } from "./http/body/body-reader.ts";
import { createListener } from "./http/connection/listener.ts";
import { createDispatch } from "./http/dispatch/dispatch.ts";
import { createMiddleware } from "./http/dispatch/middleware.ts";
import { createWebhookDispatch } from "./http/dispatch/webhook.ts";
import { OutputBudget, type SlowReader } from "./http/output/output-budget.ts";
import { outputLimits } from "./http/output/output-limits.ts";
import { implementations } from "./implementations.ts";
import { JOBS } from "./jobs/jobs.ts";
import { startJobs } from "./jobs/start-jobs.ts";
import { equalBytes, type Keys } from "./keys.ts";
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
import { createSourceControl } from "./scm/source-control.ts";
import { createRevocationMonitor } from "./services/call/revocation-monitor.ts";
import { createStreamSlots } from "./services/call/stream-slots.ts";
import { asLeader, type Store } from "./store/store.ts";
import { createUnaryPath } from "./unary/unary-path.ts";

/** Time for accepted requests to finish when the server is stopped. */
const DRAIN_MS = 10_000;

/** Interval of the checks for slow readers. */
const PASS_MS = 500;

export interface ServerDependencies {
  readonly store: Store;
  readonly keys: Keys;
  readonly log: Log;
  /** Returns milliseconds since 1970 UTC. */
  readonly now: () => number;
}

export interface Server {
  /** Starts to accept requests; resolves with the URL at which clients reach it. */
  listen(): Promise<string>;
  /** The transport for clients in this process; it works as long as the server does. */
  readonly transport: Transport;
  /**
   * Stops the server: readiness fails, accepted requests finish (10 s at most),
   * streams end, jobs stop. The store stays open.
   */
  close(): Promise<void>;
}

/** Composes the server from its parts; nothing listens yet. */
export function buildServer(config: Config, deps: ServerDependencies): Server {
  const { store, keys, log } = deps;
  const draining = new AbortController();
  const unreadiness = () => (draining.signal.aborted ? "the server is shutting down" : store.problem());
  const readiness = { isReady: () => unreadiness() === undefined, draining: draining.signal };
  const newId = idMaker(deps.now);
  const report: ReportFault = (err, call) => log.error({ ...call, err }, "internal error");
  const check = createCheck();
  let { baseUrl } = config;
  const streamSlots = createStreamSlots({
    perToken: config.streamsPerToken,
    perOrganization: config.streamsPerOrganization,
    perServer: config.streams,
  });
  const revocationMonitor = createRevocationMonitor(createRevalidation({ store, now: deps.now }));
  const routes = createRoutes({
    implementations: implementations({
      store,
      keys,
      pageTokens: createPageTokens(keys.pageMac, equalBytes),
      check,
      baseUrl: () => baseUrl,
      now: deps.now,
      allowOrganizationCreation: config.allowOrganizationCreation,
      countLimit: config.countLimit,
      pageBytes: config.pageBytes,
      revocationMonitor,
      draining: draining.signal,
      leaseMs: config.leaseDuration * 1000,
      onUnusableWork: (work, err) => log.error({ ...work, err }, "work cannot begin and was set aside"),
    }),
    // Errors outermost, so that errors of all others are reported too; ids in lower case before their
    // form is checked; innermost the idempotency key, which must hash every request in its last form.
    interceptors: [
      errorInterceptor(report),
      outputLimit(draining.signal),
      revokeStreams(revocationMonitor, streamSlots),
      queryPagination,
      requireKnownFields,
      lowerCaseIds,
      checkRequests(check),
      idempotencyKeys(keys.beginRequestMacs),
    ],
    readiness,
    allowUnknownFields: config.allowUnknownFields,
  });
  const authenticate = createAuthentication({
    store,
    keys,
    now: deps.now,
    onUpdateFailure: (err) => log.warn({ err }, "the last use of a token was not written"),
  });
  const bodyReader = createBodyReader(config);
  const dispatch = createDispatch({
    routes,
    authenticate,
    readiness,
    unaryPath: config.fastPath === "on" ? createUnaryPath(report, bodyReader.parseElsewhere) : undefined,
    ...bodyReader,
    maxTimeoutMs: config.maxTimeout * 1000,
    report,
  });
  const webhook = createWebhookDispatch({
    store,
    keys,
    now: deps.now,
    authenticate,
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
    handle: createMiddleware({
      dispatch,
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
    transport: createInMemoryTransport({ routes, authenticate, readiness, newId }),
    async listen() {
      const { host, port } = await listener.listen();
      baseUrl ||= `${config.tlsCert ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
      const context = {
        store: asLeader(store),
        keys,
        log,
        scm: createSourceControl({
          allowPrivateAddresses: config.allowPrivateRemotes,
          plainHttpHosts: config.plainHttpHosts,
        }),
        revocationMonitor,
        now: deps.now,
        draining: draining.signal,
        settings: config,
      };
      const slowReaders = {
        name: "slow-readers",
        everyMs: PASS_MS,
        isLocal: true,
        run: async () => budget.pass(PASS_MS),
      };
      jobs = startJobs([...JOBS.map((make) => make(context)), slowReaders], log, () => store.leads());
      return baseUrl;
    },
    async close() {
      draining.abort();
      await Promise.all([listener.drain(DRAIN_MS), jobs?.stop()]);
      await bodyReader.close();
    },
  };
}
