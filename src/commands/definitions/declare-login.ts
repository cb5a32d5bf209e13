import type { Command } from "commander";
import { credentialsFile } from "../client/credentials.ts";
import { CLIENT_SETTINGS, type ClientFlags, serverOf } from "../client/server-access.ts";
import { type Terminal, withSettings } from "./command-line.ts";

/** Declares `chartroom login` and `chartroom logout`. */
export function declareLogin(program: Command, terminal: Terminal): void {
  withSettings(
    program
      .command("login")
      .description("store an access token for later commands; it is pasted, or comes by standard input")
      .action(async (flags: ClientFlags) => {
        const { env, input, output } = terminal;
        const place = { server: serverOf(flags, env), file: credentialsFile(env) };
        // Loaded on demand: a command does not load the modules of others.
        const { logIn } = await import("../client/login.ts");
        terminal.print(await logIn({ ...place, input, output }));
        input.destroy();
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    program
      .command("logout")
      .description("remove the stored access token of a server")
      .action(async (flags: ClientFlags) => {
        const { env } = terminal;
        const { logOut } = await import("../client/login.ts");
        terminal.print(logOut({ server: serverOf(flags, env), file: credentialsFile(env) }));
      }),
    CLIENT_SETTINGS,
  );
}
