import type { Command } from "commander";
import { readConfig, SETTINGS } from "../../config/config.ts";
import {
  AUDIT_RETENTION_SETTINGS,
  AUDIT_SETTINGS,
  RETENTION_SETTINGS,
} from "../../config/maintenance-settings.ts";
import {
  type Flags,
  type RunUntilStopped,
  runOnData,
  type Terminal,
  withDataSettings,
  withSettings,
} from "./command-line.ts";
import { declareBackup } from "./declare-backup.ts";

/** Declares `chartroom doctor`, `audit`, `retention`, `keys`, `backup`, `move` and `restore`: the commands on the data folder as a whole. */
export function declareData(program: Command, terminal: Terminal, runUntilStopped: RunUntilStopped): void {
  withSettings(
    program
      .command("doctor")
      .description(
        "check everything that a server with these settings needs, and explain how to fix problems; exit code 1 if there are any",
      )
      .action(async (flags: Flags) => {
        const { diagnose } = await import("../doctor/doctor.ts");
        const { isWell, text } = await diagnose(flags, terminal, Date.now);
        terminal.print(text);
        terminal.setExitCode(isWell ? 0 : 1);
      }),
    SETTINGS,
  );
  const audit = program.command("audit").description("verify, export and check the audit log");
  withDataSettings(
    audit
      .command("verify")
      .description(
        "verify the audit chains of a data folder, or of a copy of one, and print where they are broken; exit code 1 if any is",
      )
      .action(async (flags: Flags) => {
        const { holds, text } = await (await import("../record/audit.ts")).verifyAudit(
          readConfig(flags, terminal.env),
        );
        terminal.print(text);
        terminal.setExitCode(holds ? 0 : 1);
      }),
  );
  withDataSettings(
    audit
      .command("export")
      .description(
        "print the audit log with its chains, one JSON object per line; works while the server is running",
      )
      .option(
        "--since <file>",
        "continue after the end of this earlier export; by default, start with the first row",
      )
      .action(async ({ since, ...flags }: Flags & { readonly since?: string }) =>
        (await import("../record/audit-export.ts")).exportAudit(
          readConfig(flags, terminal.env),
          since,
          terminal.print,
        ),
      ),
  );
  withDataSettings(
    audit
      .command("check <files...>")
      .description(
        "check that exports of the audit log, given in the order in which they were made, are complete and unchanged; exit code 1 if not",
      )
      .action(async (files: string[], flags: Flags) => {
        const { holds, text } = await (await import("../record/audit-export.ts")).checkExports(
          readConfig(flags, terminal.env),
          files,
        );
        terminal.print(text);
        terminal.setExitCode(holds ? 0 : 1);
      }),
  );
  withSettings(
    withDataSettings(
      program
        .command("retention")
        .description(
          "remove, once, everything that is past the retention in the settings and organization policies; works while the server is running",
        )
        .option("--dry-run", "only print what would be removed, with counts and bytes", false)
        .action(({ dryRun, ...flags }: Flags & { readonly dryRun: boolean }) =>
          runOnData(terminal, flags, async (config) =>
            (await import("../record/retention.ts")).runRetention(config, dryRun, Date.now(), terminal.print),
          ),
        ),
    ),
    { ...RETENTION_SETTINGS, ...AUDIT_SETTINGS, ...AUDIT_RETENTION_SETTINGS },
  );
  withDataSettings(
    program
      .command("keys")
      .description("manage the server's encryption keys in the key file")
      .command("rotate")
      .description("create a new key and re-encrypt all credentials with it; stop all servers first")
      .action((flags: Flags) =>
        runOnData(terminal, flags, async (config) => (await import("../keys.ts")).rotateKeys(config)),
      ),
  );
  declareBackup(program, terminal, runUntilStopped);
  withDataSettings(
    program
      .command("move")
      .description("move the data between a data folder and PostgreSQL; stop all servers first")
      .requiredOption("--from <place>", "source: a data folder, or postgres://user@host:5432/database")
      .requiredOption("--to <place>", "target: the other of the two; must be empty")
      .action(({ from, to, ...flags }: Flags & { readonly from: string; readonly to: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await import("../move.ts")).moveData(config, { from, to }, terminal),
        ),
      ),
  );
}
