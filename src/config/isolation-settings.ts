import { integer, oneOf, paths } from "./setting-values.ts";
import { setting } from "./settings.ts";

/** The settings of what keeps work in that a runner executes, and of how much of the machine it may use. */
export const ISOLATION_SETTINGS = {
  isolation: setting({
    flag: "--isolation",
    argument: "auto|bubblewrap|none",
    env: "CHARTROOM_ISOLATION",
    default: "auto",
    help: "what keeps commands and agents in: auto takes the strongest that works on this machine; none lets them do what the runner's user may",
    read: oneOf<"auto" | "bubblewrap" | "none">(["auto", "bubblewrap", "none"]),
  }),
  isolationRead: setting({
    flag: "--isolation-read",
    argument: "paths",
    env: "CHARTROOM_ISOLATION_READ",
    default: "",
    help: "files and folders, separated by colons, that isolated work may read beside the system's programs, such as those of agents",
    read: paths,
  }),
  isolationUser: setting({
    flag: "--isolation-user",
    argument: "uid",
    env: "CHARTROOM_ISOLATION_USER",
    default: "64913",
    help: "id of the user and group that isolated work has where the runner is root",
    read: integer(1, 4_294_967_293),
  }),
  isolationProcesses: setting({
    flag: "--isolation-processes",
    argument: "number",
    env: "CHARTROOM_ISOLATION_PROCESSES",
    default: "4096",
    help: "how many processes and threads each isolated command may have at once",
    read: integer(16, 1_000_000),
  }),
  isolationMemory: setting({
    flag: "--isolation-memory",
    argument: "MiB",
    env: "CHARTROOM_ISOLATION_MEMORY",
    default: "0",
    help: "memory of each process of isolated work; 0 is three quarters of the machine's",
    read: integer(0, 1_073_741_824),
  }),
  isolationDisk: setting({
    flag: "--isolation-disk",
    argument: "MiB",
    env: "CHARTROOM_ISOLATION_DISK",
    default: "51200",
    help: "size of an environment's files at which its isolated work is ended",
    read: integer(1, 1_073_741_824),
  }),
  isolationTmp: setting({
    flag: "--isolation-tmp",
    argument: "MiB",
    env: "CHARTROOM_ISOLATION_TMP",
    default: "10240",
    help: "size of an environment's /tmp at which its isolated work is ended",
    read: integer(1, 1_073_741_824),
  }),
  isolationFreeDisk: setting({
    flag: "--isolation-free-disk",
    argument: "MiB",
    env: "CHARTROOM_ISOLATION_FREE_DISK",
    default: "512",
    help: "free space of the disk of the workspaces below which isolated work is ended",
    read: integer(0, 1_073_741_824),
  }),
} as const;
