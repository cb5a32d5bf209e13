import { randomUUID } from "node:crypto";
import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cleanEnvironment, type Programs } from "../process/command.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import { type RemoteSettings, type ResolveHost, systemResolve } from "./remote-address.ts";

export interface GitSettings {
  readonly programs: Programs;
  /** A folder of the runner's own, which is made: no command of an environment is to write into it. */
  readonly folder: string;
  readonly remotes: RemoteSettings;
  /** The private key for ssh remotes, a file; none when absent, and then no ssh remote that wants one opens. */
  readonly sshKeyFile?: string | undefined;
  /** How names become addresses; as the machine does it when absent. */
  readonly resolve?: ResolveHost;
  /** For one git command, in milliseconds; an hour when absent. */
  readonly timeoutMs?: number;
}

/** What git is run with. */
export interface GitTools {
  readonly programs: Programs;
  readonly remotes: RemoteSettings;
  readonly resolve: ResolveHost;
  readonly sshKeyFile: string | undefined;
  readonly timeoutMs: number;
  /** HOME of git: empty, so that no settings but ours hold. */
  readonly home: string;
  /** For repositories that live as long as one push. */
  readonly scratch: string;
  readonly askPass: string;
  readonly ssh: string;
}

const HOUR_MS = 3_600_000;

/** The first git that connects to the address which was checked (http.curloptResolve). */
const OLDEST_GIT: readonly [major: number, minor: number] = [2, 37];

/**
 * Makes what git needs: its home and the two small programs that it asks.
 *
 * @throws WorkFailure git_missing when there is no git, or one older than 2.37
 */
export async function prepareGit(settings: GitSettings): Promise<GitTools> {
  const { programs, folder, remotes, sshKeyFile, resolve = systemResolve, timeoutMs = HOUR_MS } = settings;
  await requireGitVersion(programs);
  const home = join(folder, "home");
  const scratch = join(folder, "scratch");
  for (const made of [home, scratch]) await mkdir(made, { recursive: true, mode: 0o700 });
  const askPass = await program(folder, "askpass", ASK_PASS);
  const ssh = await program(folder, "ssh", SSH);
  return { programs, remotes, resolve, sshKeyFile, timeoutMs, home, scratch, askPass, ssh };
}

/**
 * Answers git's questions, and only those about the host that the credential is
 * for. The values are in the environment of git alone: not in an argument, which
 * every user of the machine can read, and not in the file.
 */
const ASK_PASS = `#!/bin/sh
case "$1" in
"Username for '$CHARTROOM_GIT_SCHEME://$CHARTROOM_GIT_HOST': ")
  printf '%s\\n' "$CHARTROOM_GIT_USER" ;;
"Password for '$CHARTROOM_GIT_SCHEME://"*"@$CHARTROOM_GIT_HOST': ")
  printf '%s\\n' "$CHARTROOM_GIT_TOKEN" ;;
*) exit 1 ;;
esac
`;

/**
 * Connects to the address that was checked, with the operator's key for it and
 * no other: ssh would offer those of the user that the runner runs as, with that
 * user's settings, to whatever host a workflow names. A host's key is remembered
 * at the first connection, and another one refused from then on.
 */
const SSH = `#!/bin/sh
exec ssh -F none -o BatchMode=yes -o ConnectTimeout=30 -o ClearAllForwardings=yes \\
  -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=\\"$CHARTROOM_SSH_KNOWN_HOSTS\\"" \\
  -o "HostName=$CHARTROOM_SSH_ADDRESS" -o "HostKeyAlias=$CHARTROOM_SSH_HOST" \\
  -o IdentityAgent=none -o IdentitiesOnly=yes -o "IdentityFile=\\"$CHARTROOM_SSH_KEY\\"" "$@"
`;

/** Written whole or not at all: another runner over the same folder may run it now. */
async function program(folder: string, name: string, text: string): Promise<string> {
  const file = join(folder, name);
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, text, { mode: 0o700 });
  await chmod(draft, 0o700);
  await rename(draft, file);
  return file;
}

async function requireGitVersion(programs: Programs): Promise<void> {
  const { stdout } = await programs
    .run({
      program: "git",
      args: ["--version"],
      folder: "/",
      environment: cleanEnvironment(programs, "/"),
      keepBytes: 200,
    })
    .catch(() => ({ stdout: "" }));
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(stdout.toString()) ?? [];
  const [oldestMajor, oldestMinor] = OLDEST_GIT;
  const isNew =
    Number(major) > oldestMajor || (Number(major) === oldestMajor && Number(minor) >= oldestMinor);
  if (!isNew) {
    throw new WorkFailure(
      "git_missing",
      `git ${OLDEST_GIT.join(".")} or newer is needed in PATH: install it`,
    );
  }
}
