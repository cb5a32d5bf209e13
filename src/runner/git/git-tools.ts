import { randomUUID } from "node:crypto";
import { chmod, mkdir, realpath, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunGitApart } from "../isolation/isolation.ts";
import { commandEnvironment, type Programs } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { ASK_PASS, SSH, SSH_RELAY, sshRelayStarter } from "./apart/git-programs.ts";
import { type RemoteSettings, type ResolveHost, systemResolve } from "./remote-address.ts";

export interface GitSettings {
  readonly programs: Programs;
  /** A folder of the runner that no command of an environment may write to. It is created. */
  readonly folder: string;
  readonly remotes: RemoteSettings;
  /** The file with the private key for ssh remotes. When absent, ssh remotes that require a key fail. */
  readonly sshKeyFile?: string | undefined;
  /** The resolver of host names; the machine's when absent. */
  readonly resolve?: ResolveHost;
  /** The timeout of one git command, in milliseconds; an hour when absent. */
  readonly timeoutMs?: number;
  /** Isolates git when it contacts another machine; it is not isolated when absent. */
  readonly runApart?: RunGitApart | undefined;
}

/** The programs, settings and folders that git runs with. */
export interface GitTools {
  readonly programs: Programs;
  readonly remotes: RemoteSettings;
  readonly resolve: ResolveHost;
  readonly sshKeyFile: string | undefined;
  readonly timeoutMs: number;
  /** The HOME of git: empty, so that only the runner's settings apply. */
  readonly home: string;
  /** The folder for repositories that exist for one push. */
  readonly scratch: string;
  readonly askPass: string;
  readonly ssh: string;
  /** The program that acts as ssh for a git that runs apart, and its files. */
  readonly sshRelay: string;
  readonly sshRelayFiles: readonly string[];
  readonly runApart: RunGitApart | undefined;
}

const HOUR_MS = 3_600_000;

/** The first version of git that can connect to a checked address (http.curloptResolve). */
const MIN_GIT_VERSION: readonly [major: number, minor: number] = [2, 37];

/**
 * Creates the files that git needs: its home and the two small programs that it calls.
 *
 * @throws WorkFailure git_missing when git is missing or older than 2.37
 */
export async function prepareGit(settings: GitSettings): Promise<GitTools> {
  const {
    programs,
    folder,
    remotes,
    sshKeyFile,
    resolve = systemResolve,
    timeoutMs = HOUR_MS,
    runApart,
  } = settings;
  await requireGitVersion(programs);
  const home = join(folder, "home");
  const scratch = join(folder, "scratch");
  for (const made of [home, scratch]) await mkdir(made, { recursive: true, mode: 0o700 });
  const askPass = await writeProgram(folder, "askpass", ASK_PASS);
  const ssh = await writeProgram(folder, "ssh", SSH);
  const relay = await writeProgram(folder, "ssh-relay.mjs", SSH_RELAY);
  // Only Linux can run git apart.
  const node = await realpath("/proc/self/exe").catch(() => "node");
  const sshRelay = await writeProgram(folder, "ssh-relay", sshRelayStarter(node, relay));
  const sshRelayFiles = [sshRelay, node, relay];
  return {
    ...{ programs, remotes, resolve, sshKeyFile, timeoutMs, home, scratch },
    ...{ askPass, ssh, sshRelay, sshRelayFiles, runApart },
  };
}

/** Writes a program file atomically: another runner on the same folder may be running it. */
async function writeProgram(folder: string, name: string, text: string): Promise<string> {
  const file = join(folder, name);
  const draft = `${file}.${randomUUID()}`;
  // It contains no secret, and a git that runs apart may have another user.
  await writeFile(draft, text, { mode: 0o755 });
  await chmod(draft, 0o755);
  await rename(draft, file);
  return file;
}

/** Requires a git that runners can use. @throws WorkFailure git_missing when it is missing or older than 2.37 */
export async function requireGitVersion(programs: Programs): Promise<void> {
  const { stdout } = await programs
    .run({
      program: "git",
      args: ["--version"],
      folder: "/",
      environment: commandEnvironment(programs, "/"),
      keepBytes: 200,
    })
    .catch(() => ({ stdout: "" }));
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(stdout.toString()) ?? [];
  const [oldestMajor, oldestMinor] = MIN_GIT_VERSION;
  const isNew =
    Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor);
  if (!isNew) {
    throw new WorkFailure(
      "git_missing",
      `git ${MIN_GIT_VERSION.join(".")} or newer is needed in PATH: install it`,
    );
  }
}
