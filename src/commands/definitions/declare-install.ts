import { resolve } from "node:path";
import type { Command } from "commander";
import type { InstallChoice } from "../install/systemd.ts";
import type { UnitSettings } from "../install/units.ts";
import type { Terminal } from "./command-line.ts";

type InstallFlags = Partial<InstallChoice> &
  Partial<UnitSettings["credentials"]> & { readonly node?: string; readonly server: string };

/** Folder of this release, or of the checkout. */
const PROGRAM = resolve(import.meta.dirname, "../../..");

/** Declares `chartroom install systemd`. */
export function declareInstall(program: Command, terminal: Terminal): void {
  program
    .command("install")
    .description("install Chartroom as services of this machine")
    .command("systemd")
    .description("write the units of a server and a runner, and files for their settings; as root")
    .option("--print", "print the files and write none")
    .option("--remove", "remove the files that are as they were written; data and users stay")
    .option("--force", "replace, or remove, files that somebody has changed too")
    .option("--root <folder>", "the folder to use as /", "/")
    .option("--node <file>", "the Node that runs Chartroom; by default the one that runs this command")
    .option("--server <url>", "the server for which the runner works", "http://127.0.0.1:8080")
    .option("--key-file <file>", "the server's key file, which systemd hands to it")
    .option("--database-password-file <file>", "the database's password, which systemd hands to the server")
    .option(
      "--exchange-token-file <file>",
      "the runner's exchange token, which systemd hands to it",
      "/etc/chartroom/exchange-token",
    )
    .action(async (flags: InstallFlags) => {
      const { installSystemd } = await import("../install/systemd.ts");
      const { node = terminal.nodePath, server, root = "/" } = flags;
      const { keyFile = "", databasePasswordFile = "", exchangeTokenFile = "" } = flags;
      const credentials = { keyFile, databasePasswordFile, exchangeTokenFile };
      const { print = false, remove = false, force = false } = flags;
      terminal.print(
        installSystemd({ node, program: PROGRAM, credentials, server }, { root, print, remove, force }),
      );
    });
}
