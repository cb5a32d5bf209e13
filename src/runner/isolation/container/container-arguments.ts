import type { Command } from "../../process/command.ts";
import { WorkFailure } from "../../protocol/work-failure.ts";
import type { Workspace } from "../../steps/workspace.ts";
import type { WorkLimits } from "../limits.ts";
import { realPathOf, type SystemView } from "../system-view.ts";

/** The engine that runs containers on this machine. */
export interface Engine {
  readonly name: "podman" | "docker";
  /** Its program. */
  readonly file: string;
  /** The environment variables of its program. */
  readonly environment: Readonly<Record<string, string>>;
  /** True if it runs without root. */
  readonly isRootless: boolean;
  /** True if the engine's own control groups limit each container. */
  readonly hasGroups: boolean;
}

/** The folder in the container with the runner's files for the command. */
const COMMAND_FOLDER = "/run/chartroom";
/** The label of all containers of a runner. */
export const LABEL = "chartroom.runner";
const SHARED_MEMORY_BYTES = 512 * 2 ** 20;

export interface ContainerParts {
  readonly engine: Engine;
  readonly image: string;
  readonly view: Pick<SystemView, "readable">;
  readonly workspace: Workspace;
  /** The folder that is the environment's /tmp. */
  readonly tmp: string;
  /** Files and folders of the runner that the work may read. */
  readonly readable: readonly string[];
  readonly limits: WorkLimits;
  /** The user and group id of the work on the machine. */
  readonly user: string;
  /** The seccomp profile. */
  readonly filterFile: string;
  /** The label value that marks the runner's containers. */
  readonly runner: string;
}

/**
 * Docker does as much of this as it can by default. It rejects these options, and lets work write to an image's
 * volumes.
 */
const PODMAN_ONLY = [
  "--read-only-tmpfs=false",
  "--pid=private",
  "--cgroupns=private",
  "--uts=private",
  "--image-volume=ignore",
];

/** Returns the arguments that confine a container, for commands of the work and for the runner's forwarder. */
export function confinement(parts: ConfinedParts): string[] {
  const { processes, memoryBytes } = parts.limits;
  return [
    ...groupedConfinement(parts),
    `--ulimit=nproc=${processes}:${processes}`,
    "--ulimit=core=0:0",
    `--ulimit=data=${memoryBytes}:${memoryBytes}`,
    "--ulimit=nofile=4096:4096",
  ];
}

export type ConfinedParts = Pick<ContainerParts, "engine" | "limits" | "user" | "filterFile" | "runner">;

/** Returns the arguments of {@link confinement} without the limits per process. */
export function groupedConfinement({ engine, limits, user, filterFile, runner }: ConfinedParts): string[] {
  const { processes, memoryBytes, processors } = limits;
  const cpus = processors > 0 ? [`--cpus=${processors}`] : [];
  const memory = [`--memory=${memoryBytes}`, `--memory-swap=${memoryBytes}`];
  // Without its own groups, podman leaves a container in the group that started it; docker itself starts no
  // containers.
  const ungrouped = engine.name === "podman" ? ["--cgroups=disabled"] : [];
  return [
    ["--rm", `--label=${LABEL}=${runner}`, "--pull=missing", "--log-driver=none"],
    ["--cap-drop=all", "--security-opt=no-new-privileges", `--security-opt=seccomp=${filterFile}`],
    // In a rootless container, root maps to the user; all other ids do not exist on the machine.
    engine.isRootless && engine.name === "docker" ? ["--user=0:0"] : [`--user=${user}`],
    engine.isRootless && engine.name === "podman" ? ["--userns=keep-id"] : [],
    // A health check would be another program in the container.
    ["--read-only", "--no-healthcheck", "--ipc=private", `--shm-size=${SHARED_MEMORY_BYTES}`],
    engine.name === "podman" ? PODMAN_ONLY : [],
    engine.hasGroups ? [`--pids-limit=${processes}`, ...memory, ...cpus] : ungrouped,
  ].flat();
}

/**
 * Returns the arguments that run a command of the work in its own container.
 *
 * @param network the container whose network it joins; undefined for no network
 * @param commandFolder the runner's folder with the script that starts the command
 */
export function commandArguments(
  parts: ContainerParts,
  { folder, input }: Pick<Command, "folder" | "input">,
  { name, network, commandFolder }: Started,
): string[] {
  const { image, view, workspace, tmp, readable } = parts;
  return [
    ["run", `--name=${name}`, ...confinement(parts)],
    input ? ["--interactive"] : [],
    [network === undefined ? "--network=none" : `--network=container:${network}`],
    mount(tmp, "/tmp"),
    mount(tmp, "/var/tmp"),
    ...view.readable.map((path) => mount(realPathOf(path), path, "readonly")),
    ...readable.map((path) => mount(path, path, "readonly")),
    mount(workspace.tree, workspace.tree),
    mount(workspace.home, workspace.home),
    mount(commandFolder, COMMAND_FOLDER),
    [`--workdir=${folder}`, "--entrypoint=/bin/sh", image, `${COMMAND_FOLDER}/command`],
  ].flat();
}

export interface Started {
  /** The name of the container. */
  readonly name: string;
  readonly network: string | undefined;
  readonly commandFolder: string;
}

/** Returns the argument that mounts a path of the machine. */
export function mount(source: string, target: string, how?: "readonly"): string[] {
  return [`--mount=type=bind,${field("source", source)},${field("target", target)}${how ? `,${how}` : ""}`];
}

/** Formats a field of comma-separated values for both engines. */
function field(name: string, value: string): string {
  const text = `${name}=${value}`;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Image name prefixes that podman reads as files of the machine. */
const FILES = "containers-storage|dir|docker-archive|docker-daemon|oci|oci-archive|ostree|sif|tarball";
/** A registry and a path, optionally with a tag or a digest. */
const IMAGE = new RegExp(
  `^(?!(${FILES}):)[A-Za-z0-9][\\w.-]*(:\\d+(?=/))?(/[a-z0-9][\\w.-]*)*(:\\w[\\w.-]{0,127})?(@[a-z0-9]+:[a-f0-9]{32,128})?$`,
);

/** Returns whether the text names an image, rather than an engine option or a file of the machine. */
export function isImageName(image: string): boolean {
  return IMAGE.test(image);
}

/**
 * Requires that the text names an image and is not an engine option.
 *
 * @throws WorkFailure policy_unsupported
 */
export function requireImageName(image: string): void {
  if (isImageName(image)) return;
  throw new WorkFailure(
    "policy_unsupported",
    "the organization's policy defaultEnvironmentImage names no image that this runner can use: " +
      "it takes names such as registry.example.org/team/tools:1",
  );
}

/** The file that the script creates once it has found its command in the image. */
export const STARTED_FILE = "started";

/**
 * Returns the script that starts a command. Its variables and arguments are in the script, because other users of the
 * machine can read a program's arguments, and the engine must not get the variables.
 */
export function commandScript({ program, args, environment }: Command): string {
  const variables = Object.entries(environment).filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  return [
    ...variables.map(([name, value]) => `export ${name}=${quoted(value)}`),
    `command -v ${quoted(program)} > /dev/null || { echo 'the image has no such program' >&2; exit 127; }`,
    `: > ${COMMAND_FOLDER}/${STARTED_FILE}`,
    `exec ${[program, ...args].map(quoted).join(" ")}`,
    "",
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
