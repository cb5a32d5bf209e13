import { readFileSync } from "node:fs";
import { join } from "node:path";
import { builderOf } from "../../src/store/query-builder.ts";
import { type Answer, post } from "../harness/call.ts";
import { succeeded } from "../harness/fake-runner.ts";
import { createGate } from "../harness/gate.ts";
import { withServerData } from "../harness/member.ts";
import { newExchangeToken, type RunnerProcess, startRunnerProcess } from "../harness/runner-process.ts";
import { startScmHost } from "../harness/scm-host.ts";
import { type ServedRepository, serveRepositories } from "../harness/served-repository.ts";
import { startServer, type TestServer, temporaryFolder } from "../harness/server.ts";
import { type HeldCall, startServerProxy } from "../harness/server-proxy.ts";
import { type StartedExecution, startExecution, task } from "../harness/started-execution.ts";
import { until } from "../harness/until.ts";
import { BRANCH, type HeldAction, type Moment, type Places } from "./moments.ts";

/** A server, a host and a runner; the server and the runner can be killed and restarted. */
export interface World extends Places {
  /** The current process. */
  readonly server: TestServer;
  /** The current process. */
  readonly runner: RunnerProcess;
  /** The current server, with a token that is valid on each. */
  readonly api: { readonly url: string; readonly token: string };
  /** Sends SIGKILL; clients lose their connections. */
  killServer(): Promise<void>;
  restartServer(): Promise<void>;
  /** Sends SIGKILL; processes that it started keep running. */
  killRunner(): Promise<void>;
  restartRunner(): Promise<void>;
  /** The lines that commands wrote: a sign and the id of the action. */
  journal(): string[];
  readonly journalFile: string;
  stop(): Promise<void>;
}

/** How the processes of a world are started. */
export interface WorldOptions {
  readonly leaseSeconds: number;
  /** More arguments of the server. */
  readonly serverArgs?: readonly string[];
  /** More arguments of the runner. */
  readonly runnerArgs?: readonly string[];
}

export async function createWorld({
  leaseSeconds,
  serverArgs = [],
  runnerArgs = [],
}: WorldOptions): Promise<World> {
  const args = ["--lease-duration", String(leaseSeconds), ...serverArgs];
  const host = await startScmHost({ kind: "github" });
  let server = await startServer({ args });
  const { token, dataDir } = server;
  const proxy = await startServerProxy(server);
  const { runnerId, exchangeToken } = await newExchangeToken(server);
  const remotes = ["--allow-private-remotes", "--plain-http-hosts", host.host];
  const settings = { args: [...remotes, "--slots", "16", ...runnerArgs] };
  const source = "HOST_AUTHENTICATION_TOKEN_SOURCE_PAT";
  const hostToken = { runnerId, host: host.host, token: host.token, source };
  await succeeded(post(server, "RunnerConfigurationService/CreateHostAuthenticationToken", hostToken));
  let runner = startRunnerProcess(proxy, { ...settings, env: { CHARTROOM_EXCHANGE_TOKEN: exchangeToken } });
  await runner.untilLogged("the runner takes work");
  const { stateDir } = runner;
  const journalFile = join(temporaryFolder(), "journal");
  return {
    host,
    proxy,
    api: {
      get url() {
        return server.url;
      },
      token,
    },
    gate: createGate(),
    journalFile,
    journal: () => readFileSync(journalFile, { encoding: "utf8", flag: "a+" }).trim().split("\n"),
    get server() {
      return server;
    },
    get runner() {
      return runner;
    },
    async killServer() {
      await server.kill();
      proxy.closeConnections();
    },
    async restartServer() {
      server = { ...(await startServer({ dataDir, args })), token };
      proxy.forwardTo(server);
    },
    async killRunner() {
      await runner.kill();
      proxy.closeConnections();
    },
    async restartRunner() {
      runner = startRunnerProcess(proxy, { ...settings, stateDir });
      await runner.untilLogged("the runner takes work");
    },
    async stop() {
      await runner.kill();
      await Promise.all([host.stop(), proxy.stop()]);
    },
  };
}

/** An execution whose actions are each held at a different moment. */
export interface HeldRun {
  readonly run: StartedExecution;
  /** In the order of the actions. */
  readonly repositories: readonly ServedRepository[];
  /** Releases all of them, including those that are attempted again. */
  release(): void;
}

/** Starts one action for each moment, and resolves when each of them is held there. */
export async function holdActions(world: World, moments: readonly Moment[]): Promise<HeldRun> {
  const { gate, host } = world;
  const repositories = serveRepositories(
    moments.map(({ name }) => name),
    host,
  );
  const held: HeldCall[] = [];
  const hold = (index: number, leaseId = "") => {
    const action: HeldAction = { repository: repositories[index] as ServedRepository, leaseId };
    held.push((moments[index] as Moment).hold(world, action));
  };
  const later = moments.filter(({ isEarly }) => !isEarly);
  for (const [index, { isEarly }] of moments.entries()) if (isEarly) hold(index);
  for (const { name } of later) gate.close(`${name}-begin`);
  const run = await startEditing(world, repositories);
  await gate.reached(...later.map(({ name }) => `${name}-begin`));
  const [actions, leases] = [await run.actions(), await leasesOf(world.server)];
  for (const [index, { name, isEarly }] of moments.entries()) {
    if (isEarly) continue;
    hold(index, leases.get(actions[index].id));
    gate.open(`${name}-begin`);
  }
  await Promise.all(held.map(({ reached }) => reached));
  return {
    run,
    repositories,
    release() {
      for (const { release } of held) release();
    },
  };
}

/** Starts an execution over one repository, and resolves when its report action is held. */
export async function holdReport(world: World): Promise<HeldRun> {
  const { gate, host } = world;
  const repositories = serveRepositories(["summed"], host);
  gate.close("report");
  const command = `${gate.wait("report")}; grep -c intValue "$CHARTROOM_OUTPUTS"`;
  const report = { outputs: [{ title: "Reports", key: "reports", integer: {}, command }] };
  const run = await startEditing(world, repositories, report);
  await gate.reached("report");
  return { run, repositories, release: () => gate.open("report") };
}

/**
 * Starts an execution over one repository, and resolves when its action is leased but the runner
 * has not received the lease.
 */
export async function holdLease(world: World): Promise<HeldRun> {
  // Whichever call leases it: the one that asks for work, or one that ends other work.
  const held = [
    world.proxy.holdResponse("leaseWork", (_, { works }) => works.length > 0),
    world.proxy.holdResponse("reportWorks", (_, { works }) => works.length > 0),
  ];
  const repositories = serveRepositories(["lease-unheard"], world.host);
  const run = await startEditing(world, repositories);
  await Promise.race(held.map(({ reached }) => reached));
  return {
    run,
    repositories,
    release() {
      for (const { release } of held) release();
    },
  };
}

/** Starts an execution over so many repositories; none of its actions are held. */
export async function startFreely(world: World, count: number): Promise<HeldRun> {
  const names = Array.from({ length: count }, (_, index) => `free-${index + 1}`);
  const repositories = serveRepositories(names, world.host);
  return { run: await startEditing(world, repositories), repositories, release: () => undefined };
}

function startEditing(
  { api, gate, journalFile }: World,
  repositories: readonly ServedRepository[],
  report?: object,
): Promise<StartedExecution> {
  const at = (part: string) => gate.wait(`"$(cat name.txt)-${part}"`);
  const note = (sign: string) => `echo "${sign} $CHARTROOM_ACTION_ID" >> '${journalFile}'`;
  const edit = [note("+"), at("begin"), at("work"), "echo one > b.txt", note("-")];
  const lines = { title: "Lines", key: "lines", integer: {}, command: `${at("report")}; wc -l < b.txt` };
  return startExecution(api, {
    actions: repositories.length,
    repository: (index) => repositories[index]?.cloneUrl ?? "",
    steps: [
      task(edit.join("\n")),
      { pullRequest: { title: "Edit", branch: BRANCH } },
      { report: { outputs: [lines] } },
    ],
    ...(report && { report }),
  });
}

/** Returns the lease ids by action. */
function leasesOf(server: TestServer): Promise<Map<string, string>> {
  return withServerData(server, async ({ reader }) => {
    const rows = await builderOf(reader).selectFrom("work").select(["id", "subject_id"]).execute();
    return new Map(rows.map(({ id, subject_id }) => [subject_id, id]));
  });
}

/** Returns the actions of an execution once it is over, the report last. */
export async function ended({ run }: HeldRun): Promise<Answer["body"][]> {
  await until(run.execution, ({ status }) => /COMPLETED|STOPPED/.test(status.phase));
  return run.actions();
}
