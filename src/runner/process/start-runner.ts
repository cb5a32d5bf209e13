import { realpathSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { hostname, machine, release, type } from "node:os";
import { join, resolve } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import { RunnerIsolation } from "#gen/service/v1/runner_pb.js";
import type { Log } from "../../log.ts";
import type { ScmSettings } from "../../scm/settings.ts";
import { createSourceControl } from "../../scm/source-control.ts";
import { openRunnerCache } from "../cache/runner-cache.ts";
import { EnvironmentWatch } from "../changes/environment-watch.ts";
import { Egress, type EgressOptions } from "../egress/egress.ts";
import type { MachineSettings } from "../egress/machine-registries.ts";
import { prepareGit } from "../git/git-tools.ts";
import type { RemoteSettings } from "../git/remote-address.ts";
import type { ChosenIsolation } from "../isolation/choose-isolation.ts";
import type { IsolationName } from "../isolation/isolation.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import { createWorkClient } from "../protocol/connection.ts";
import { execute } from "../protocol/execute.ts";
import { sendHeartbeats } from "../protocol/heartbeat.ts";
import type { Lease } from "../protocol/lease.ts";
import { beginInstance, register } from "../protocol/registration.ts";
import { RunnerError } from "../protocol/runner-error.ts";
import { supportedPolicies } from "../protocol/supported-policies.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { poll } from "../protocol/work-loop.ts";
import { environmentAnswers } from "../questions/environment-answers.ts";
import { runQuestionLoop } from "../questions/question-loop.ts";
import { findWorkingTree, prepareWorkDir } from "../steps/work-dirs.ts";
import { spreadSubfolders } from "../steps/workspace.ts";
import { createCommandRunner } from "./command.ts";
import { endOrphanedGroups, openCommandRecord } from "./command-record.ts";
import { Limiter } from "./limiter.ts";
import type { SignalGroup } from "./process-group.ts";

export interface RunnerOptions {
  /** The transport to the server; tokens are added here. */
  readonly transport: Transport;
  /** The server as named in the runner's state. */
  readonly server: string;
  /** The URL at which commands reach the server. */
  readonly serverUrl: string;
  /** The folder of the runner's token and state; it is created. */
  readonly stateDir: string;
  /** The folder of the workspaces and prebuilds; it is created, and may be the state folder. */
  readonly workDir: string;
  /**
   * The number of concurrent pieces of work other than agents, and of environments created concurrently for agents.
   */
  readonly slots: number;
  /**
   * The number of concurrent agents, including those that wait for input. Agents have their own slots, so an action
   * never waits for the agent of its own step.
   */
  readonly agentSlots: number;
  /** The size of the repository cache in `workDir`; undefined for none. */
  readonly repositoryCacheBytes: number | undefined;
  readonly remotes: RemoteSettings & ScmSettings;
  /** The hosts that the operator lets isolated work reach, and the environment variables of this machine. */
  readonly egress: Pick<EgressOptions, "named" | "privateNetworks" | "authorities"> &
    Pick<MachineSettings, "env">;
  /** The private key for ssh remotes; undefined for none. */
  readonly sshKeyFile: string | undefined;
  /** Returns the exchange token, needed when the runner has no valid token; undefined when there is none. */
  readonly exchangeToken: () => Promise<string | undefined>;
  /** True if it runs on the server's or a member's own machine. */
  readonly local: boolean;
  /** The environment class that it offers, described for people. */
  readonly environmentClass: { readonly displayName: string; readonly description: string };
  /** The isolation of the work. */
  readonly isolation: ChosenIsolation;
  /** True if agents defined through the API may run. */
  readonly apiAgents: boolean;
  /** The version of the program. */
  readonly version: string;
  readonly signalGroup: SignalGroup;
  /** The PATH of all programs and commands. */
  readonly path: string;
  readonly log: Log;
}

/** A runner that runs until it is stopped. */
export interface Runner {
  /** Resolves once it has stopped; rejects with a RunnerError when it cannot continue. */
  readonly ended: Promise<void>;
  /** Leases no more work, ends or releases running work, and resolves when the runner has stopped. */
  stop(): Promise<void>;
}

const ISOLATIONS: Readonly<Record<IsolationName, RunnerIsolation>> = {
  none: RunnerIsolation.NONE,
  bubblewrap: RunnerIsolation.BUBBLEWRAP,
  container: RunnerIsolation.CONTAINER,
};

const KINDS_WITHOUT_AGENTS = [
  WorkKind.ENVIRONMENT,
  WorkKind.ACTION,
  WorkKind.PREBUILD,
  WorkKind.PREBUILD_REMOVAL,
];

/** Time that running work has to end by itself when the runner is stopped. */
const GRACE_MS = 5_000;

/**
 * Starts a runner. It registers, or waits for an unreachable server, in the
 * background.
 *
 * @throws RunnerError when this machine cannot be a runner
 */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const tools = await prepareTools(options);
  const draining = new AbortController();
  const ended = work(options, tools, draining.signal);
  // A failure is reported to the caller through `ended`; until then it must not be an unhandled rejection.
  ended.catch(() => undefined);
  return {
    ended,
    async stop() {
      draining.abort();
      await ended.catch(() => undefined);
    },
  };
}

const WORKING_TREE_WARNING =
  "the workspaces are inside a git working tree: programs that look for files in the folders above, such as packages or instructions for agents, find those of that tree; choose a folder outside of it";

async function prepareTools(options: RunnerOptions): Promise<RunnerTools> {
  const { path, remotes, sshKeyFile, signalGroup, log, serverUrl, apiAgents } = options;
  // Absolute, since commands run in their own folders.
  const folder = resolve(options.stateDir);
  const commands = join(folder, "commands");
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const workDir = resolve(options.workDir);
    const places = await prepareWorkDir(folder, workDir, log);
    const around = findWorkingTree(realpathSync(workDir));
    if (around !== undefined) log.warn({ folder: workDir, workingTree: around }, WORKING_TREE_WARNING);
    const left = await endOrphanedGroups(commands, signalGroup);
    if (left > 0) log.warn({ count: left }, "commands that an earlier runner left behind were ended");
    const record = await openCommandRecord(commands);
    const programs = { run: createCommandRunner(signalGroup, { record }), path };
    await spreadSubfolders(programs, places.workspaces);
    const isolation = await options.isolation.create({ programs, record, folder: join(folder, "isolation") });
    const runApart = isolation.runGit;
    const git = await prepareGit({ programs, folder: join(folder, "git"), remotes, sshKeyFile, runApart });
    const scm = createSourceControl(remotes);
    const newEnvironments = new Limiter(options.slots);
    const { env, ...reachable } = options.egress;
    // Work without isolation uses the network of the machine.
    const egress =
      isolation.name === "none"
        ? undefined
        : new Egress({ serverUrl, ...reachable, machine: { programs, env } });
    return { programs, isolation, egress, git, scm, ...places, newEnvironments, serverUrl, apiAgents, log };
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    if (error instanceof WorkFailure) throw new RunnerError(error.message);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new RunnerError(`the folder ${options.stateDir} cannot be used: ${message}`);
  }
}

async function work(
  options: RunnerOptions,
  toolsWithoutCache: RunnerTools,
  draining: AbortSignal,
): Promise<void> {
  const { transport, slots, agentSlots, apiAgents, log, version, local, environmentClass } = options;
  const systemDetails = `${type()} ${release()} ${machine()}, ${hostname()}`;
  try {
    const state = await register({
      ...options,
      introduction: {
        version,
        systemDetails,
        local,
        environmentClass,
        isolation: ISOLATIONS[toolsWithoutCache.isolation.name],
        apiAgents,
        keptPolicies: { policies: supportedPolicies(toolsWithoutCache.isolation) },
      },
      signal: draining,
    });
    const { runnerId, token } = state;
    const instanceId = await beginInstance(state, { ...options, signal: draining });
    const workDir = resolve(options.workDir);
    const cacheOptions = { workDir, runnerId, maxBytes: options.repositoryCacheBytes, log };
    const client = createWorkClient(transport, token);
    const watch = new EnvironmentWatch(client, toolsWithoutCache.git, log);
    const repositoryCache = await openRunnerCache(cacheOptions);
    const tools = { ...toolsWithoutCache, connections: client, watch, repositoryCache };
    const over = new AbortController();
    const held = new Map<string, Lease>();
    const heartbeats = sendHeartbeats(client, instanceId, log, over.signal);
    const questions = runQuestionLoop({
      client,
      instanceId,
      answer: environmentAnswers({ ...tools, client }),
      renew(leaseIds) {
        for (const id of leaseIds) void held.get(id)?.renew();
      },
      log,
      signal: AbortSignal.any([draining, over.signal]),
    });
    log.info({ version: options.version, runner: runnerId, slots, agentSlots }, "the runner takes work");
    const loop = {
      client,
      instanceId,
      log,
      draining: AbortSignal.any([draining, over.signal]),
      graceMs: GRACE_MS,
      async execute(work: Work, lease: Lease) {
        held.set(work.leaseId, lease);
        try {
          await execute(tools, work, lease);
        } finally {
          held.delete(work.leaseId);
        }
      },
    };
    const loops = [
      poll({ ...loop, kinds: KINDS_WITHOUT_AGENTS, slots }),
      poll({ ...loop, kinds: [WorkKind.AGENT], slots: agentSlots, agentSlots, apiAgents }),
    ];
    try {
      await Promise.all(loops);
    } finally {
      // When one loop fails, stop the other one too.
      over.abort();
      await Promise.allSettled([...loops, heartbeats, questions]);
    }
    log.info({ runner: runnerId }, "the runner has stopped");
  } catch (error) {
    // The runner was stopped before the server had answered.
    if (!draining.aborted) throw error;
  }
}
