import { spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import type { Readable } from "node:stream";
import { forwarderProgram } from "../egress/forwarder.ts";
import { PROXY_PORT, type WorkNetwork } from "../egress/work-network.ts";
import { WorkFailure } from "../protocol/work-failure.ts";
import type { SandboxPrograms } from "./bubblewrap.ts";
import type { SystemView } from "./system-view.ts";
import type { UserEntry } from "./user-entry.ts";

export interface NetworkNamespaceOptions {
  readonly programs: SandboxPrograms;
  readonly entry: UserEntry;
  readonly view: SystemView;
  /** The folder mounted as /etc in sandboxes. */
  readonly etc: string;
  readonly network: WorkNetwork;
}

/** The files of the runner that {@link openNetworkNamespace} needs for a network. */
export function sourcesOfNamespace({ socketFile }: WorkNetwork): readonly string[] {
  return [nodeFile(), socketFile];
}

/** Returns the path of the Node that runs this process. */
function nodeFile(): string {
  return readlinkSync("/proc/self/exe");
}

/**
 * Returns the start of a command line that enters a network.
 *
 * @throws WorkFailure command_not_started
 */
export type EnterNamespace = () => Promise<readonly string[]>;

/** The paths of the runner's files in the forwarder's sandbox. */
const NODE = "/run/node";
const SOCKET = "/run/egress.sock";
const STATUS_DESCRIPTOR = 3;
/** A program needs a capability to listen on a port below this one. */
const FIRST_FREE_PORT = 1_024;

/**
 * Opens a network that has only a loopback interface, on which a forwarder listens for the runner's proxy. It has its
 * own user namespace, outside all sandboxes, so commands reach the forwarder only through its port. All commands of a
 * piece of work share it. It ends with the work, and with this process.
 */
export function openNetworkNamespace(options: NetworkNamespaceOptions): EnterNamespace {
  const { programs, entry, network } = options;
  const [program = "", ...args] = [...entry.prefix, programs.bwrap, ...forwarderArguments(options)];
  const child = spawn(program, args, {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", LANG: "C.UTF-8" },
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const [, stdout, stderr, status] = child.stdio as unknown as readonly Readable[];
  const texts = { stdout: "", stderr: "", status: "" };
  const { promise: opened, resolve, reject } = Promise.withResolvers<string>();
  // A failure is reported by the first command that runs.
  opened.catch(() => undefined);
  const collect = (name: keyof typeof texts, stream: Readable | undefined) =>
    stream
      ?.on("error", () => undefined)
      .on("data", (bytes: Buffer) => {
        if (texts[name].length < 2_000) texts[name] += bytes;
        const id = /"child-pid": *(\d+)/.exec(texts.status)?.[1];
        if (id !== undefined && texts.stdout.startsWith("ready\n")) resolve(id);
      });
  collect("stdout", stdout);
  collect("stderr", stderr);
  collect("status", status);
  let problem: string | undefined;
  const fail = (why: string) => {
    problem ??= `no network could be made for the work: ${why}`;
    reject(new WorkFailure("command_not_started", problem));
  };
  child.once("error", (error) => fail(error.message));
  child.once("close", (code, signal) =>
    fail(texts.stderr.trim().split("\n")[0] || `it ended with ${signal ?? code}`),
  );
  network.ended.addEventListener("abort", () => child.kill("SIGKILL"));
  if (network.ended.aborted) child.kill("SIGKILL");
  return async () => {
    const id = await opened;
    // After the end, another process may have the same id.
    if (problem !== undefined) throw new WorkFailure("command_not_started", problem);
    return [
      ...[programs.nsenter, "--preserve-credentials"],
      ...[`--user=/proc/${id}/ns/user`, `--net=/proc/${id}/ns/net`, "--"],
    ];
  };
}

function forwarderArguments({ entry, view, etc, network }: NetworkNamespaceOptions): string[] {
  const { socketFile, loopbackService: service } = network;
  const forwarder = forwarderProgram({ socketFile: SOCKET, proxyPort: PROXY_PORT, service });
  return [
    [
      "--unshare-user",
      "--unshare-ipc",
      "--unshare-pid",
      "--unshare-uts",
      "--unshare-cgroup",
      "--unshare-net",
    ],
    ["--die-with-parent", "--new-session", "--json-status-fd", String(STATUS_DESCRIPTOR)],
    service && service.port < FIRST_FREE_PORT ? ["--cap-add", "CAP_NET_BIND_SERVICE"] : [],
    ...view.links.map(({ path, target }) => ["--symlink", target, path]),
    ["--ro-bind", entry.sourceOf(etc), "/etc"],
    ...view.system.filter((path) => !path.startsWith("/etc/")).map((path) => ["--ro-bind", path, path]),
    ["--proc", "/proc", "--dev-bind", "/dev/null", "/dev/null"],
    ["--ro-bind", entry.sourceOf(nodeFile()), NODE, "--ro-bind", entry.sourceOf(socketFile), SOCKET],
    ["--remount-ro", "/", "--chdir", "/", "--clearenv", "--"],
    [NODE, "--max-old-space-size=64", "--input-type=module", "--eval", forwarder],
  ].flat();
}
