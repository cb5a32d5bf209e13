import type { Command } from "commander";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import type { Plan } from "../files/plan.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { noteOf, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadPlan = () => import("../files/plan.ts");
const loadTexts = () => import("../files/plan-text.ts");

type Json = { readonly json?: boolean };
type PlanFlags = ClientFlags &
  Json & { readonly file: string; readonly adopt?: boolean; readonly prune?: boolean };

/** The default owner of an export. */
const DEFAULT_OWNER = "main";

/** Declares `chartroom plan`, `chartroom apply` and `chartroom export`. */
export function declareFiles(program: Command, terminal: Terminal): void {
  withSettings(
    planOptions(
      program
        .command("plan")
        .description("show how a server differs from its resource files; exit code 2 if it does"),
    ).action(async ({ file, adopt = false, prune = false, json, ...flags }: PlanFlags) => {
      const access = accessOf(flags, terminal);
      const { makePlan } = await loadPlan();
      const { hasDrift, PLANNED, planJson, planText } = await loadTexts();
      const plan = await makePlan(access, file, { adopt, prune });
      terminal.print(json ? planJson(plan) : planText(plan, PLANNED));
      noteRest(terminal, plan, { prune });
      if (hasDrift(plan)) terminal.setExitCode(ExitCode.drift);
    }),
    CLIENT_SETTINGS,
  );
  withSettings(
    planOptions(
      program
        .command("apply")
        .description("change a server to match its resource files, all or nothing")
        .option("--yes", "do not ask for confirmation before --prune removes resources"),
    ).action(
      async ({
        file,
        adopt = false,
        prune = false,
        yes = false,
        json,
        ...flags
      }: PlanFlags & { readonly yes?: boolean }) => {
        const access = accessOf(flags, terminal);
        const { applyPlan, makePlan } = await loadPlan();
        const { APPLIED, planJson, planText, removalText } = await loadTexts();
        let plan = await makePlan(access, file, { adopt, prune });
        const removals = removalText(plan);
        if (prune && !yes && removals !== "") {
          await askFor(terminal, removals);
          // Some resources may belong to others by now.
          plan = await makePlan(access, file, { adopt, prune });
          if (removalText(plan) !== removals)
            throw new StartError("what would be removed has changed meanwhile: nothing was changed");
        }
        const applied = await applyPlan(access, plan, { prune });
        terminal.print(json ? planJson(applied) : planText(applied, APPLIED));
        noteRest(terminal, plan, { prune });
      },
    ),
    CLIENT_SETTINGS,
  );
  withSettings(
    program
      .command("export")
      .description("write the resources of a server as files for `plan` and `apply`")
      .argument("[folder]", "folder to write to; by default, standard output")
      .option("--owner <name>", "owner to write into the files", DEFAULT_OWNER)
      .action(async (folder: string | undefined, { owner, ...flags }: ClientFlags & { owner: string }) => {
        const access = accessOf(flags, terminal);
        const { exportText, readExport, writeExport } = await import("../files/export.ts");
        const found = await readExport(access, owner);
        if (folder === undefined) terminal.print(exportText(found));
        else
          terminal.print(
            (await writeExport(found, folder, terminal.whenInterrupted)).map((file) => `${file}\n`).join(""),
          );
        const note = noteOf(terminal);
        for (const each of found.leftOut) note(`left out: ${each}`);
      }),
    CLIENT_SETTINGS,
  );
}

function planOptions(command: Command): Command {
  return command
    .requiredOption("-f, --file <file or folder>", "YAML or JSON file, or a folder of such files")
    .option("--adopt", "take over resources of the same name that have no owner")
    .option("--prune", "remove resources that the folder owns but no longer describes")
    .option("--json", "print a JSON object with owner, changes, unchanged and unowned");
}

/** @throws StartError without a terminal, and for any answer except yes */
async function askFor(terminal: Terminal, removals: string): Promise<void> {
  if (!terminal.input.isTTY) throw new StartError("--prune removes something here: give --yes, too");
  const { confirm } = await import("../client/approval.ts");
  terminal.output.write(`${removals}\n`);
  if (!(await confirm(terminal, "Remove these? [y/N] "))) throw new StartError("nothing was changed");
}

/** Prints what a plan leaves unchanged. */
function noteRest(terminal: Terminal, { resources }: Plan, { prune }: { readonly prune: boolean }): void {
  const note = noteOf(terminal);
  const left = resources.filter(({ action }) => action === "remove").length;
  if (!prune && left > 0) note(`${left} that the files do not describe: --prune removes them`);
  const unowned = resources.filter(({ isUnowned }) => isUnowned).length;
  if (unowned > 0) note(`${unowned} that no folder owns: apply --adopt takes them`);
}
