import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import packageJson from "../package.json" with { type: "json" };
import { type Config, keyFileOf } from "./config/config.ts";
import { diskFloorBytesOf } from "./config/maintenance-settings.ts";
import type { SignInProvider } from "./config/sign-in-providers.ts";
import { createPageTokens } from "./domain/page.ts";
import { createBodyReader } from "./http/body/body-reader.ts";
import { createListener } from "./http/connection/listener.ts";
import { TlsRenewal } from "./http/connection/tls-renewal.ts";
import { readTlsFiles } from "./http/connection/tls-server.ts";
import { createConsoleDispatch } from "./http/console/console.ts";
import { createClientAddress, createProxyCheck } from "./http/dispatch/client-address.ts";
import { createDispatch } from "./http/dispatch/dispatch.ts";
import { createMiddleware } from "./http/dispatch/middleware.ts";
import { createWebhookDispatch } from "./http/dispatch/webhook.ts";
import { createMcpDispatch } from "./http/mcp/mcp.ts";
import { OutputBudget, type SlowReader } from "./http/output/output-budget.ts";
import { outputLimits } from "./http/output/output-limits.ts";
import { createReferenceDispatch } from "./http/reference/reference.ts";
import { createScimDispatch } from "./http/scim/scim.ts";
import { type SessionOrigin, sessionOriginOf } from "./http/sign-in/session-origin.ts";
import { createSignInDispatch } from "./http/sign-in/sign-in.ts";
import { implementations } from "./implementations.ts";
import { asLeader } from "./jobs/job-writes.ts";
import { createJobs } from "./jobs/jobs.ts";
import { retentionOfSettings } from "./jobs/retention/retention.ts";
import { type RunningJobs, startJobs } from "./jobs/start-jobs.ts";
import { equalBytes } from "./keys.ts";
import { createMachineChecks } from "./machine-checks.ts";
import { auditMetrics } from "./metrics/audit-metrics.ts";
import { CallMeasures } from "./metrics/call-measures.ts";
import type { MetricSource } from "./metrics/metric.ts";
import { installationMetrics, writeMetrics } from "./metrics/store-metrics.ts";
import { idMaker } from "./new-id.ts";
import { createMachineTokens } from "./openid/machine-tokens.ts";
import { createProviderClient, problemIn } from "./openid/provider-client.ts";
import { createPullRequestHosts } from "./pull-request-hosts.ts";
import { createAdmission } from "./rpc/access/admission.ts";
import { createAuthentication, createRevalidation } from "./rpc/access/authentication.ts";
import { createCallLimits } from "./rpc/access/call-limits.ts";
import { createCheck } from "./rpc/check.ts";
import type { ReportFault } from "./rpc/error/error.ts";
import { createReadiness } from "./rpc/health.ts";
import { createInMemoryTransport } from "./rpc/in-memory.ts";
import { createInterceptors } from "./rpc/interceptors.ts";
import { createRoutes } from "./rpc/routes.ts";
import { createSourceControl } from "./scm/source-control.ts";
import type { ServerDependencies } from "./server-dependencies.ts";
import { auditWarnings, countedSources, createServerHealth } from "./server-figures.ts";
import { createOrganizationSwitch } from "./services/access/sign-in/organization-switch.ts";
import { createProviderSignIn } from "./services/access/sign-in/provider-sign-in.ts";
import { createRevocationMonitor } from "./services/call/revocation-monitor.ts";
import { createStreamSlots } from "./services/call/stream-slots.ts";
import { createDeviceLogin } from "./services/identity/device-login.ts";
import { createMachineExchange } from "./services/identity/machine/machine-exchange.ts";
import { createSignIn } from "./services/identity/sign-in.ts";
import { auditTargetsOf, createAuditSinks } from "./sinks/audit-sinks.ts";
import { createEventSender } from "./sinks/event-sender.ts";
import { PASSED_ON } from "./tracing/call-traces.ts";
import { createUnaryPath } from "./unary/unary-path.ts";

export interface Server {
  /** Starts to accept requests; resolves with the URL at which clients reach it. */
  listen(): Promise<string>;
  /** The transport for clients in this process; it works as long as the server does. */
  readonly transport: Transport;
  /** The sources of the server's metrics. */
  readonly metrics: readonly MetricSource[];
  /** Replaces the sign-in providers and issuers that are given, and reloads the certificate from its files. */
  reload(changed: Partial<Pick<ServerDependencies, "providers" | "machineIssuers">>): Promise<void>;
  /**
   * Stops the server: readiness fails, accepted requests finish (10 s at most),
   * streams end, jobs stop. The store stays open.
   */
  close(): Promise<void>;
}

/** The folder that `npm run build` creates; the server also starts without it. */
const CONSOLE_FOLDER = join(import.meta.dirname, "../console/dist");

/** Composes the server from its parts; it does not listen yet. */
export function buildServer(config: Config, deps: ServerDependencies): Server {
  const { store, keys, log } = deps;
  const auditTargets = auditTargetsOf(config);
  const machine = createMachineChecks({
    dataDir: config.databaseUrl ? undefined : config.dataDir,
    diskFloorBytes: diskFloorBytesOf(config),
    keyFile: keyFileOf(config),
    keys,
    warn: auditWarnings(store, auditTargets, deps.now),
  });
  const readiness = createReadiness(() => store.problem(), machine.problems);
  const { draining } = readiness;
  const newId = idMaker(deps.now);
  const report: ReportFault = (err, { requestId, operation, trace }) =>
    log.error({ requestId, operation, trace: trace?.traceId, err }, "internal error");
  const check = createCheck();
  let { baseUrl } = config;
  const streamSlots = createStreamSlots({
    perToken: config.streamsPerToken,
    perOrganization: config.streamsPerOrganization,
    perServer: config.streams,
  });
  const revocationMonitor = createRevocationMonitor(createRevalidation({ store, now: deps.now }));
  const scm = createSourceControl({
    allowPrivateAddresses: config.allowPrivateRemotes,
    ...{ plainHttpHosts: config.plainHttpHosts, traces: deps.traces },
  });
  const routes = createRoutes({
    implementations: implementations({
      store,
      keys,
      hosts: createPullRequestHosts(scm),
      pageTokens: createPageTokens(keys.pageMac, equalBytes),
      check,
      baseUrl: () => baseUrl,
      now: deps.now,
      eventHosts: config.webhookPrivateHosts,
      allowOrganizationCreation: config.allowOrganizationCreation,
      retention: retentionOfSettings(config),
      serverHealth: (scope) => health(scope),
      countLimit: config.countLimit,
      pageBytes: config.pageBytes,
      revocationMonitor,
      draining,
      machineIssuers: () => machineTokens.issuers(),
      leaseMs: config.leaseDuration * 1000,
      onPartFailure: (operation, err) => log.error({ operation, err }, "a part of a call failed"),
      onUnusableWork: (work, err) => log.error({ ...work, err }, "work cannot begin and was set aside"),
    }),
    interceptors: createInterceptors({
      report,
      draining,
      revocationMonitor,
      streamSlots,
      check,
      beginRequestMacs: keys.beginRequestMacs,
    }),
    readiness,
    allowUnknownFields: config.allowUnknownFields,
  });
  const authenticate = createAuthentication({
    store,
    keys,
    now: deps.now,
    onUpdateFailure: (err) => log.warn({ err }, "the last use of a token was not written"),
  });
  const limits = createCallLimits(config, store.others, () => performance.now(), newId());
  const admission = createAdmission(authenticate, readiness);
  // Known once the server listens; before that no request can need it.
  let origin: SessionOrigin | undefined;
  const sessionOrigin = () => {
    origin ??= sessionOriginOf(baseUrl);
    return origin;
  };
  const bodyReader = createBodyReader(config);
  const dispatch = createDispatch({
    routes,
    admission,
    limits,
    unaryPath: config.fastPath === "on" ? createUnaryPath(report, bodyReader.parseElsewhere) : undefined,
    ...bodyReader,
    sessionOrigin,
    now: deps.now,
    maxTimeoutMs: config.maxTimeout * 1000,
    report,
  });
  const webhook = createWebhookDispatch({
    store,
    keys,
    now: deps.now,
    admission,
    limits,
    report,
    onRecordFailure: (err) => log.warn({ err }, "a bad signature was not entered in the ledger"),
  });
  const serveProviders = (providers: readonly SignInProvider[]) =>
    providers.map((provider) => ({
      ...{ name: provider.name, issuer: provider.issuer, rules: provider },
      client: createProviderClient(provider, deps.now),
    }));
  let providers = serveProviders(deps.providers);
  const machineTokens = createMachineTokens(deps.machineIssuers, deps.now);
  const signIn = createSignInDispatch({
    signIn: createSignIn({ store, keys, now: deps.now }),
    providers: () => providers,
    machineTokens,
    machineExchange: createMachineExchange({ store, keys }),
    onExchangeRefused: (reason, err) =>
      log.warn({ reason, ...problemIn(err) }, "no token was given to a machine"),
    deviceLogin: createDeviceLogin({ store, keys, now: deps.now }),
    providerSignIn: createProviderSignIn({ store, keys, now: deps.now }),
    organizationSwitch: createOrganizationSwitch({ store, keys, now: deps.now }),
    onProviderFailure: (provider, problem, err) =>
      log.warn({ provider, problem, ...problemIn(err) }, "nobody was signed in"),
    ...{ keys, admission, sessionOrigin, report },
    now: deps.now,
  });
  const scim = createScimDispatch({
    store,
    revocationMonitor,
    admission,
    limits,
    now: deps.now,
    baseUrl: () => baseUrl,
    report,
  });
  const mcp = createMcpDispatch({
    ...{ store, routes, admission, limits, sessionOrigin, report, ...bodyReader },
    ...{ baseUrl: () => baseUrl, corsOrigins: config.corsOrigins },
    ...{ now: deps.now, version: packageJson.version },
  });
  const onCut = (reader: SlowReader) => log.warn(reader, "a slow reader was cut off");
  const calls = new CallMeasures();
  const output = new OutputBudget(outputLimits(config), onCut);
  const tls = config.tlsCert === "" ? undefined : readTlsFiles(config.tlsCert, config.tlsKey);
  const listener = createListener({
    host: config.host,
    port: config.port,
    ...(config.rateLimits === "on" &&
      config.connectionsPerAddress > 0 && {
        perAddress: { most: config.connectionsPerAddress, isExempt: createProxyCheck(config.trustedProxies) },
      }),
    ...(tls && { tls }),
    handle: createMiddleware({
      dispatch,
      webhook,
      signIn,
      console: createConsoleDispatch({ folder: CONSOLE_FOLDER, sessionOrigin, report }),
      reference: createReferenceDispatch(report),
      scim,
      mcp,
      probes: { readiness, warnings: machine.warnings, version: packageJson.version },
      corsOrigins: config.corsOrigins,
      clientAddress: createClientAddress(config.trustedProxies),
      limits,
      newId,
      budget: output,
      ...{ measures: calls, traces: deps.traces ?? PASSED_ON },
      log: (line) => log.info(line, "call"),
    }),
  });
  const isShared = store.others !== undefined;
  const jobs = createJobs({
    store: asLeader(store),
    keys,
    log,
    scm,
    revocationMonitor,
    output,
    machine,
    limits,
    auditSinks: createAuditSinks({ ...config, ...deps }, { now: deps.now, draining, isShared }),
    eventSender: createEventSender(config.webhookPrivateHosts, deps.now, deps.traces),
    ...{ baseUrl: () => baseUrl, now: deps.now, draining },
    settings: config,
  });
  const certificate =
    tls &&
    new TlsRenewal({
      ...{ certFile: config.tlsCert, keyFile: config.tlsKey, used: tls },
      use: listener.useTls,
      onRenewed: (validTo) => log.info({ validTo }, "the renewed certificate is in use"),
      onFailure: (err) => log.error({ err }, "the certificate was not renewed: the one before stays in use"),
    });
  const ofCalls = countedSources({ calls, streamSlots, readiness, limits, listener });
  const sources = [...ofCalls, auditMetrics(store, auditTargets, deps.now)];
  const health = createServerHealth({
    ...deps,
    readiness,
    version: packageJson.version,
    auditTargets,
    sources,
  });
  let running: RunningJobs | undefined;
  return {
    transport: createInMemoryTransport({ routes, admission, newId }),
    metrics: [...sources, () => writeMetrics(store), installationMetrics(store, deps.now)],
    async listen() {
      await machine.check();
      const { url } = await listener.listen();
      baseUrl ||= url;
      running = startJobs(jobs, log, () => store.leads());
      certificate?.start();
      return baseUrl;
    },
    async reload(changed) {
      if (changed.providers) providers = serveProviders(changed.providers);
      if (changed.machineIssuers) machineTokens.use(changed.machineIssuers);
      await certificate?.renew();
    },
    async close() {
      readiness.drain();
      certificate?.stop();
      await Promise.all([listener.drain(), running?.stop()]);
      await bodyReader.close();
    },
  };
}
