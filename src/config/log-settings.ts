import { integer, oneOf } from "./setting-values.ts";
import { setting } from "./settings.ts";

export const logLevel = setting({
  flag: "--log-level",
  argument: "level",
  env: "CHARTROOM_LOG_LEVEL",
  default: "info",
  help: "debug, info, warn, error or silent; the log goes to standard error",
  read: oneOf(["debug", "info", "warn", "error", "silent"]),
});

/** The settings of the log of a server. */
export const LOG_SETTINGS = {
  logLevel,
  logFile: setting({
    flag: "--log-file",
    argument: "file",
    env: "CHARTROOM_LOG_FILE",
    default: "",
    help: "file that the log goes to instead of standard error; SIGHUP opens it again",
    read: (text: string) => text,
  }),
  logFileSize: setting({
    flag: "--log-file-size",
    argument: "MiB",
    env: "CHARTROOM_LOG_FILE_SIZE",
    default: "64",
    help: "a log file of this size becomes FILE.1 and another is begun",
    read: integer(1, 1_048_576),
  }),
  logFiles: setting({
    flag: "--log-files",
    argument: "number",
    env: "CHARTROOM_LOG_FILES",
    default: "5",
    help: "log files that are kept, the present one among them; of more the oldest is removed",
    read: integer(1, 1_000),
  }),
} as const;
