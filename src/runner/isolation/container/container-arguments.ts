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
  /** The variables of its program. */
  readonly environment: Readonly<Record<string, string>>;
  /** True where it runs without root. */
  readonly isRootless: boolean;
  /** True where its own control groups are to limit a container, each for itself. */
  readonly hasGroups: boolean;
}

/** The folder of the runner's files for a command in its container. */
export const COMMAND_FOLDER = "/run/chartroom";
/** The label of all containers of a runner. */
export const LABEL = "chartroom.runner";
const SHARED_MEMORY_BYTES = 512 * 2 ** 20;

export interface ContainerParts {
  readonly engine: Engine;
  readonly image: string;
  readonly view: Pick<SystemView, "readable">;
  readonly workspace: Workspace;
  /** The folder of the environment's /tmp. */
  readonly tmp: string;
  /** Files and folders of the runner that the work may read. */
  readonly readable: readonly string[];
  readonly limits: WorkLimits;
  /** The ids of the user and group of the work, on the machine. */
  readonly user: string;
  /** The profile of the filter of system calls. */
  readonly filterFile: string;
  /** The value of the label of the runner's containers. */
  readonly runner: string;
}

/** Docker does as much of this by itself as it can: it refuses these words, and has volumes of an image written to. */
const PODMAN_ONLY = [
  "--read-only-tmpfs=false",
  "--pid=private",
  "--cgroupns=private",
  "--uts=private",
  "--image-volume=ignore",
];

/** Returns the arguments that keep a container in, of a command of the work as of the runner's forwarder. */
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

/** Returns these arguments without the limits that a process has by itself. */
export function groupedConfinement({ engine, limits, user, filterFile, runner }: ConfinedParts): string[] {
  const { processes, memoryBytes, processors } = limits;
  const cpus = processors > 0 ? [`--cpus=${processors}`] : [];
  const memory = [`--memory=${memoryBytes}`, `--memory-swap=${memoryBytes}`];
  // Podman without groups of its own leaves a container in the group that it was started in; docker starts none itself.
  const ungrouped = engine.name === "podman" ? ["--cgroups=disabled"] : [];
  return [
    ["--rm", `--label=${LABEL}=${runner}`, "--pull=missing", "--log-driver=none"],
    ["--cap-drop=all", "--security-opt=no-new-privileges", `--security-opt=seccomp=${filterFile}`],
    // In a container of a user, root is that user, and all other ids are none of the machine's.
    engine.isRootless && engine.name === "docker" ? ["--user=0:0"] : [`--user=${user}`],
    engine.isRootless && engine.name === "podman" ? ["--userns=keep-id"] : [],
    // A check of the image's health would be one more program in it.
    ["--read-only", "--no-healthcheck", "--ipc=private", `--shm-size=${SHARED_MEMORY_BYTES}`],
    engine.name === "podman" ? PODMAN_ONLY : [],
    engine.hasGroups ? [`--pids-limit=${processes}`, ...memory, ...cpus] : ungrouped,
  ].flat();
}

/**
 * Returns the arguments that run a command of the work in a container of its own.
 *
 * @param network the container whose network it has; undefined for none
 * @param commandFolder the folder of the runner with the script that starts it
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

/** Returns the argument that shows a path of the machine. */
export function mount(source: string, target: string, how?: "readonly"): string[] {
  return [`--mount=type=bind,${field("source", source)},${field("target", target)}${how ? `,${how}` : ""}`];
}

/** Returns a field of comma-separated values, as both engines read them. */
function field(name: string, value: string): string {
  const text = `${name}=${value}`;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Names of images that podman reads as files of the machine. */
const FILES = "containers-storage|dir|docker-archive|docker-daemon|oci|oci-archive|ostree|sif|tarball";
/** A registry and a path, with a tag or a digest. */
const IMAGE = new RegExp(
  `^(?!(${FILES}):)[A-Za-z0-9][\\w.-]*(:\\d+(?=/))?(/[a-z0-9][\\w.-]*)*(:\\w[\\w.-]{0,127})?(@[a-z0-9]+:[a-f0-9]{32,128})?$`,
);

/** Returns whether an image is named, and no option of the engine or file of the machine. */
export function isImageName(image: string): boolean {
  return IMAGE.test(image);
}

/**
 * Requires that an organization names an image, and no option of the engine.
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

/** The file that a script makes once its command is found in the image. */
export const STARTED_FILE = "started";

/**
 * Returns the script that becomes a command: its variables and arguments are in no arguments of a program, where other users
 * of the machine would read them, and in no variable of the engine's.
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
