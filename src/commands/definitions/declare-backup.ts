import type { Command } from "commander";
import { readConfig } from "../../config/config.ts";
import { StartError } from "../start-error.ts";
import {
  type Flags,
  numberOption,
  type RunUntilStopped,
  runOnData,
  type Terminal,
  withDataSettings,
} from "./command-line.ts";

type BackupFlags = Flags & {
  readonly schedule?: string;
  readonly keep?: number;
  readonly keepDays?: number;
};

/** Number of copies to keep when only a schedule is given. */
const KEPT = 14;

// Loaded on demand: a command does not load the modules of others.
const loadBackupCommands = () => import("../backup/backup.ts");

/** Declares `chartroom backup` and `chartroom restore`. */
export function declareBackup(program: Command, terminal: Terminal, runUntilStopped: RunUntilStopped): void {
  withDataSettings(
    program
      .command("backup <place>")
      .description(
        "back up the data, without the keys, to a file; with --keep or --schedule, to a folder of backups: each is verified by restoring it before older ones are removed. Works while the server is running",
      )
      .option(
        "--schedule <cron>",
        'keep running and make a backup on this cron schedule, in UTC, such as "17 3 * * *"',
      )
      .option(
        "--keep <number>",
        `number of backups to keep in the folder, by default ${KEPT}; without --schedule, make one backup now`,
        numberOption("--keep", 1, 10_000),
      )
      .option(
        "--keep-days <days>",
        "also remove backups older than this, but never the newest; 0 for no limit",
        numberOption("--keep-days", 0, 36_500),
      )
      .action(async (place: string, { schedule, keep, keepDays, ...flags }: BackupFlags) => {
        const kept = { number: keep ?? KEPT, days: keepDays ?? 0 };
        const target = { folder: place, kept, now: Date.now };
        if (schedule !== undefined)
          return runUntilStopped(async () => {
            const config = readConfig(flags, terminal.env);
            const { startSchedule } = await import("../backup/backup-schedule.ts");
            return startSchedule(config, { ...target, schedule }, terminal);
          });
        if (keep === undefined && keepDays !== undefined)
          throw new StartError("--keep-days goes with --keep or --schedule");
        return runOnData(terminal, flags, async (config) => {
          if (keep === undefined) return (await loadBackupCommands()).createBackup(config, place, terminal);
          const { backUpInto } = await import("../backup/backup-folder.ts");
          const { whenInterrupted } = terminal;
          const { file, removed } = await backUpInto(config, { ...target, whenInterrupted });
          return [`A good copy is in ${file}.\n`, ...removed.map((name) => `${name} is removed.\n`)].join("");
        });
      }),
  );
  withDataSettings(
    program
      .command("restore <file>")
      .description("restore a backup into a data folder that is empty or does not exist")
      .action((file: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) =>
          (await loadBackupCommands()).restoreBackup(config, file, terminal),
        ),
      ),
  );
}
