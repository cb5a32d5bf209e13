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
    .description("install Chartroom as services on this machine")
    .command("systemd")
    .description("write systemd units for a server and a runner, and files for their settings; requires root")
    .option("--print", "print the files instead of writing them")
    .option("--remove", "remove the files unless they were edited; data and users stay")
    .option("--force", "replace or remove edited files, too")
    .option("--root <folder>", "folder to use as /", "/")
    .option("--node <file>", "Node program that runs Chartroom; by default, the one that runs this command")
    .option("--server <url>", "server that the runner connects to", "http://127.0.0.1:8080")
    .option("--key-file <file>", "key file of the server, passed to it as a systemd credential")
    .option(
      "--database-password-file <file>",
      "file with the database password, passed to the server as a systemd credential",
    )
    .option(
      "--exchange-token-file <file>",
      "file with the exchange token of the runner, passed to it as a systemd credential",
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
