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
        "back up the data to one file, without the keys; with --keep or --schedule, to a folder of copies, each of which is verified by restoring it before older ones are removed; the server may be running",
      )
      .option(
        "--schedule <cron>",
        'go on, and make a copy whenever this cron expression is due, in UTC, such as "17 3 * * *"',
      )
      .option(
        "--keep <number>",
        `how many copies the folder keeps, by default ${KEPT}; without --schedule one is made now`,
        numberOption("--keep", 1, 10_000),
      )
      .option(
        "--keep-days <days>",
        "age past which copies go too, but never the newest; 0 for no bound",
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
      .description("restore a backup into a data folder, which must be empty or absent")
      .action((file: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) =>
          (await loadBackupCommands()).restoreBackup(config, file, terminal),
        ),
      ),
  );
}
