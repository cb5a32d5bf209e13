import { type Command, Option } from "commander";
import type { EnvironmentFilter, EnvironmentPhaseName } from "../client/resources.ts";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import { readText } from "../folders/file-access.ts";
import { ExitCode, StartError } from "../start-error.ts";
import { widthOf } from "../terminal/terminal-width.ts";
import { numberOption, type Terminal, withSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadResources = () => import("../client/resources.ts");

const PHASES: readonly EnvironmentPhaseName[] = [
  "creating",
  "starting",
  "running",
  "updating",
  "stopping",
  "stopped",
  "deleting",
];

type Json = { readonly json?: boolean };
type Listing = ClientFlags & Json & { readonly limit: number };

/** Declares `chartroom project ...` and `chartroom environment ...`. */
export function declareResources(program: Command, terminal: Terminal): void {
  const project = program.command("project").description("list projects, and create them from repositories");
  withSettings(
    project
      .command("list")
      .description("list projects")
      .option("--search <text>", "only projects that match this text")
      .option(
        "--limit <number>",
        "maximum number of projects to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.Project")
      .action(async ({ search, limit, json, ...flags }: Listing & { readonly search?: string }) => {
        const access = accessOf(flags, terminal);
        const { listJson, listProjects, projectTable } = await loadResources();
        const found = await listProjects(access, { search, limit });
        const { ProjectSchema } = await import("#gen/service/v1/project_pb.js");
        terminal.print(json ? listJson(ProjectSchema, found) : projectTable(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    project
      .command("import")
      .description("create a project for each repository in a list, and print the projects")
      .argument("[file]", "file with git clone URLs, one per line; by default, standard input")
      .option("--json", "print a JSON object with createdProjects and failedLines")
      .action(async (file: string | undefined, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const { importFailures, importJson, importProjects, projectTable } = await loadResources();
        const result = await importProjects(access, await listIn(file, terminal));
        if (json) terminal.print(importJson(result));
        else if (result.created.length > 0) terminal.print(projectTable(result.created, widthOf(terminal)));
        if (result.failed.length === 0) return;
        terminal.printError(importFailures(result));
        terminal.setExitCode(ExitCode.refused);
      }),
    CLIENT_SETTINGS,
  );
  const environment = program.command("environment").description("list environments");
  withSettings(
    environment
      .command("list")
      .description("list environments")
      .addOption(new Option("--phase <phases...>", "only environments in these phases").choices([...PHASES]))
      .option("--project <ids...>", "only environments of these projects")
      .option(
        "--limit <number>",
        "maximum number of environments to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.Environment")
      .action(
        async ({
          phase: phases = [],
          project: projects = [],
          limit,
          json,
          ...flags
        }: Listing & {
          readonly phase?: EnvironmentFilter["phases"];
          readonly project?: readonly string[];
        }) => {
          const access = accessOf(flags, terminal);
          const { environmentTable, listEnvironments, listJson } = await loadResources();
          const found = await listEnvironments(access, { phases, projects, limit });
          const { EnvironmentSchema } = await import("#gen/service/v1/environment_pb.js");
          terminal.print(
            json ? listJson(EnvironmentSchema, found) : environmentTable(found, widthOf(terminal)),
          );
        },
      ),
    CLIENT_SETTINGS,
  );
}

/** Declares `chartroom runner list` and `chartroom runner create`. @param runner the command `chartroom runner` */
export function declareRunnerResources(runner: Command, terminal: Terminal): void {
  withSettings(
    runner
      .command("list")
      .description("list runners of the organization")
      .option(
        "--limit <number>",
        "maximum number of runners to list",
        numberOption("--limit", 1, 100_000),
        50,
      )
      .option("--json", "print a JSON list of service.v1.Runner")
      .action(async ({ limit, json, ...flags }: Listing) => {
        const access = accessOf(flags, terminal);
        const { listJson, listRunners, runnerTable } = await loadResources();
        const found = await listRunners(access, limit);
        const { RunnerSchema } = await import("#gen/service/v1/runner_pb.js");
        terminal.print(json ? listJson(RunnerSchema, found) : runnerTable(found, widthOf(terminal)));
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    runner
      .command("create")
      .description("create a runner and print its id and its exchange token, which is shown only once")
      .argument("<name>", "name of the runner, 3 to 127 characters")
      .option("--json", "print a JSON object with runnerId and exchangeToken")
      .action(async (name: string, { json, ...flags }: ClientFlags & Json) => {
        const access = accessOf(flags, terminal);
        const created = await (await loadResources()).createRunner(access, name);
        if (json) return terminal.print(`${JSON.stringify(created)}\n`);
        terminal.print(`${created.runnerId}\n${created.exchangeToken}\n`);
        terminal.printError(
          `chartroom: the second line is the exchange token, shown this once; on the runner's machine, with it in CHARTROOM_EXCHANGE_TOKEN: chartroom runner --server ${access.server}\n`,
        );
      }),
    CLIENT_SETTINGS,
  );
}

/** @throws StartError for a file that cannot be read, and when standard input is a terminal */
async function listIn(file: string | undefined, { input }: Terminal): Promise<string> {
  if (file !== undefined && file !== "-") return readText(file);
  if (file === undefined && input.isTTY)
    throw new StartError("give the file of the list, or the list by standard input");
  const { text } = await import("node:stream/consumers");
  return text(input);
}
