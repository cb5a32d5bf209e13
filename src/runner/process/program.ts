import { realpathSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { hostname, machine, release, type } from "node:os";
import { join, resolve } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { type Work, WorkKind } from "#gen/runner/v1/work_pb.js";
import type { Log } from "../../log.ts";
import type { ScmSettings } from "../../scm/settings.ts";
import { sourceControl } from "../../scm/source-control.ts";
import { prepareGit } from "../git/git-tools.ts";
import type { RemoteSettings } from "../git/remote-address.ts";
import type { RunnerTools } from "../protocol/assignment.ts";
import { workClient } from "../protocol/connection.ts";
import { execute } from "../protocol/execute.ts";
import { sendHeartbeats } from "../protocol/heartbeat.ts";
import type { Lease } from "../protocol/lease.ts";
import { register } from "../protocol/registration.ts";
import { RunnerProblem } from "../protocol/runner-problem.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { poll } from "../protocol/work-loop.ts";
import { prepareWorkDir, workingTreeAround } from "../steps/work-dirs.ts";
import { commandRunner } from "./command.ts";
import { commandRecord, endLeftGroups } from "./command-record.ts";
import type { SignalGroup } from "./process-group.ts";

export interface RunnerOptions {
  /** The way to the server; tokens are added here. */
  readonly transport: Transport;
  /** The server, as the state of the runner names it. */
  readonly server: string;
  /** Under which commands reach the server. */
  readonly serverUrl: string;
  /** Folder of the runner's token and of what it remembers; it is made. */
  readonly stateDir: string;
  /** Folder of the workspaces and prebuilds; it is made, and may be the state folder. */
  readonly workDir: string;
  /** How many pieces of work other than agents are carried out at the same time. */
  readonly slots: number;
  /**
   * How many agents run at the same time, those that wait for input among them.
   * Apart from the others, so that an action never waits for the agent of its own
   * step.
   */
  readonly agentSlots: number;
  readonly remotes: RemoteSettings & ScmSettings;
  /** Private key for ssh remotes; undefined for none. */
  readonly sshKeyFile: string | undefined;
  /** Asked for when the runner has no token that holds; undefined when there is none. */
  readonly exchangeToken: () => Promise<string | undefined>;
  /** Whether it works on the server's or a member's own machine. */
  readonly local: boolean;
  /** The class that it brings along, for people. */
  readonly environmentClass: { readonly displayName: string; readonly description: string };
  /** Of the program. */
  readonly version: string;
  readonly signalGroup: SignalGroup;
  /** PATH of all programs and commands. */
  readonly path: string;
  readonly log: Log;
}

/** A runner that works until it is told to stop. */
export interface Runner {
  /** Resolves once it has stopped; rejects with a RunnerProblem when it cannot go on. */
  readonly ended: Promise<void>;
  /** Takes no more work, ends or gives back what is under way, and resolves when it has stopped. */
  stop(): Promise<void>;
}

const OTHER_KINDS = [WorkKind.ENVIRONMENT, WorkKind.ACTION, WorkKind.PREBUILD, WorkKind.PREBUILD_REMOVAL];

/** What is under way when the runner is told to stop may take so long to end by itself. */
const GRACE_MS = 5_000;

/**
 * Starts a runner. It registers, or waits for a server that is away, in the
 * background.
 *
 * @throws RunnerProblem when this machine cannot be a runner
 */
export async function startRunner(options: RunnerOptions): Promise<Runner> {
  const tools = await prepareTools(options);
  const draining = new AbortController();
  const ended = work(options, tools, draining.signal);
  // Whoever waits for it learns of a failure; nobody may yet.
  ended.catch(() => undefined);
  return {
    ended,
    async stop() {
      draining.abort();
      await ended.catch(() => undefined);
    },
  };
}

const IN_WORKING_TREE =
  "the workspaces are inside a git working tree: programs that look for files in the folders above, such as packages or instructions for agents, find those of that tree; choose a folder outside of it";

async function prepareTools(options: RunnerOptions): Promise<RunnerTools> {
  const { path, remotes, sshKeyFile, signalGroup, log, serverUrl } = options;
  // Commands run in folders of their own, from where no relative path leads here.
  const folder = resolve(options.stateDir);
  const commands = join(folder, "commands");
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const workDir = resolve(options.workDir);
    const places = await prepareWorkDir(folder, workDir, log);
    const around = workingTreeAround(realpathSync(workDir));
    if (around !== undefined) log.warn({ folder: workDir, workingTree: around }, IN_WORKING_TREE);
    const left = await endLeftGroups(commands, signalGroup);
    if (left > 0) log.warn({ count: left }, "commands that an earlier runner left behind were ended");
    const record = await commandRecord(commands);
    const programs = { run: commandRunner(signalGroup, { record }), path };
    const git = await prepareGit({ programs, folder: join(folder, "git"), remotes, sshKeyFile });
    return { programs, git, scm: sourceControl(remotes), ...places, serverUrl, log };
  } catch (error) {
    if (error instanceof RunnerProblem) throw error;
    if (error instanceof WorkFailure) throw new RunnerProblem(error.message);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new RunnerProblem(`the folder ${options.stateDir} cannot be used: ${message}`);
  }
}

async function work(options: RunnerOptions, tools: RunnerTools, draining: AbortSignal): Promise<void> {
  const { transport, slots, agentSlots, log, version, local, environmentClass } = options;
  const systemDetails = `${type()} ${release()} ${machine()}, ${hostname()}`;
  try {
    const { runnerId, token } = await register({
      ...options,
      introduction: { version, systemDetails, local, environmentClass },
      signal: draining,
    });
    const client = workClient(transport, token);
    const over = new AbortController();
    const heartbeats = sendHeartbeats(client, log, over.signal);
    log.info({ runner: runnerId, slots, agentSlots }, "the runner takes work");
    const loop = {
      client,
      log,
      draining: AbortSignal.any([draining, over.signal]),
      graceMs: GRACE_MS,
      execute: (work: Work, lease: Lease) => execute(tools, work, lease),
    };
    const loops = [
      poll({ ...loop, kinds: OTHER_KINDS, slots }),
      poll({ ...loop, kinds: [WorkKind.AGENT], slots: agentSlots }),
    ];
    try {
      await Promise.all(loops);
    } finally {
      // Where one loop cannot go on, the other cannot either.
      over.abort();
      await Promise.allSettled([...loops, heartbeats]);
    }
    log.info({ runner: runnerId }, "the runner has stopped");
  } catch (error) {
    // It was told to stop before the server had answered.
    if (!draining.aborted) throw error;
  }
}
