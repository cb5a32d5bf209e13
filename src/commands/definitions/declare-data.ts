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
        "check everything that a server with these settings needs, and say what is wrong and how to fix it; exit code 1 if anything is",
      )
      .action(async (flags: Flags) => {
        const { diagnose } = await import("../doctor/doctor.ts");
        const { isWell, text } = await diagnose(flags, terminal, Date.now);
        terminal.print(text);
        terminal.setExitCode(isWell ? 0 : 1);
      }),
    SETTINGS,
  );
  const audit = program.command("audit").description("the audit log");
  withDataSettings(
    audit
      .command("verify")
      .description(
        "verify the audit chains of a data folder, or of a copy of one, and print where one is broken; exit code 1 if one is",
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
      .description("print the audit log, one JSON object a line, with its chains; the server may be running")
      .option(
        "--since <file>",
        "an earlier export, after whose end it begins; by default it begins with the first row",
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
        "check that exports of the audit log, in the order in which they were made, are whole and unchanged; exit code 1 if not",
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
          "remove everything past the retention of the settings and of organizations' policies, once; the server may be running",
        )
        .option("--dry-run", "only print what would be removed, how many and how many bytes", false)
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
      .description("the server's secrets, in the key file")
      .command("rotate")
      .description("create a new key and re-encrypt all credentials with it; no server may be running")
      .action((flags: Flags) =>
        runOnData(terminal, flags, async (config) => (await import("../keys.ts")).rotateKeys(config)),
      ),
  );
  declareBackup(program, terminal, runUntilStopped);
  withDataSettings(
    program
      .command("move")
      .description("move the data between a data folder and PostgreSQL, with all servers stopped")
      .requiredOption("--from <place>", "a data folder, or postgres://user@host:5432/database")
      .requiredOption("--to <place>", "the other of the two, which must hold nothing")
      .action(({ from, to, ...flags }: Flags & { readonly from: string; readonly to: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await import("../move.ts")).moveData(config, { from, to }, terminal),
        ),
      ),
  );
}
