import { type Command, Option } from "commander";
import type { PrebuildPhaseName } from "../client/prebuild.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { numberOption, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadPrebuilds = () => import("../client/prebuild.ts");

const PHASES: readonly PrebuildPhaseName[] = [
  "pending",
  "running",
  "stopping",
  "completed",
  "failed",
  "cancelling",
  "cancelled",
  "deleting",
];

/** Minimum and maximum timeout of a prebuild, in seconds (contract, PrebuildSpec.timeout). */
const [MIN_SECONDS, MAX_SECONDS] = [300, 7_200];

type Json = { readonly json?: boolean };
type CreateFlags = ClientFlags & Json & { readonly class?: string; readonly timeout?: number };
type ListFlags = ClientFlags &
  Json & {
    readonly phase?: readonly PrebuildPhaseName[];
    readonly project?: readonly string[];
    readonly limit: number;
  };

/** Declares `chartroom prebuild ...`. */
export function declarePrebuild(program: Command, terminal: Terminal): void {
  const prebuild = program
    .command("prebuild")
    .description("manage prebuilds: prepared workspaces from which environments of a project start");
  withSettings(
    prebuild
      .command("create")
      .description("start a prebuild of a project and print its id")
      .argument("<project>", "id of the project, whose prebuild configuration names the classes")
      .option("--class <id>", "environment class; by default, the first in the configuration")
      .option(
        "--timeout <seconds>",
        "time limit for all attempts together; by default, that of the configuration",
        numberOption("--timeout", MIN_SECONDS, MAX_SECONDS),
      )
      .option("--json", "print a JSON object with prebuildId")
      .action(
        async (
          projectId: string,
          { class: environmentClassId, timeout: timeoutSeconds, json, ...flags }: CreateFlags,
        ) => {
          const access = accessOf(flags, terminal);
          const { createPrebuild } = await loadPrebuilds();
          const prebuildId = await createPrebuild(access, { projectId, environmentClassId, timeoutSeconds });
          terminal.print(json ? `${JSON.stringify({ prebuildId })}\n` : `${prebuildId}\n`);
        },
      ),
    CLIENT_SETTINGS,
  );
  withSettings(
    prebuild
      .command("list")
      .description("list prebuilds, newest first")
      .addOption(new Option("--phase <phases...>", "only prebuilds in these phases").choices([...PHASES]))
      .option("--project <ids...>", "only prebuilds of these projects")
      .option(
        "--limit <number>",
        "maximum number of prebuilds to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.Prebuild")
      .action(async ({ phase: phases = [], project: projects = [], limit, json, ...flags }: ListFlags) => {
        const access = accessOf(flags, terminal);
        const { listPrebuilds, prebuildsJson, prebuildTable } = await loadPrebuilds();
        const found = await listPrebuilds(access, { phases, projects, limit });
        terminal.print(json ? prebuildsJson(found) : prebuildTable(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    prebuild
      .command("show")
      .description("show a prebuild: its progress, and why it failed")
      .argument("<prebuild>", "id of the prebuild")
      .option("--json", "print a service.v1.Prebuild as JSON")
      .action(async (id: string, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const { getPrebuild, prebuildJson, prebuildText } = await loadPrebuilds();
        const found = await getPrebuild(access, id);
        terminal.print(json ? prebuildJson(found) : prebuildText(found));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    prebuild
      .command("cancel")
      .description("cancel a pending or running prebuild; its runner stops it and removes its files")
      .argument("<prebuild>", "id of the prebuild")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadPrebuilds()).cancelPrebuild(access, id);
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    prebuild
      .command("delete")
      .description("delete a prebuild and its workspace; environments started from it stay")
      .argument("<prebuild>", "id of the prebuild")
      .action(async (id: string, flags: ClientFlags) => {
        const access = accessOf(flags, terminal);
        await (await loadPrebuilds()).deletePrebuild(access, id);
      }),
    CLIENT_SETTINGS,
  );
}
