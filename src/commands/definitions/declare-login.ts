import type { Command } from "commander";
import { credentialsFile } from "../client/credentials.ts";
import { CLIENT_SETTINGS, type ClientFlags, serverOf } from "../client/server-access.ts";
import { type Terminal, withSettings } from "./command-line.ts";

/** The flags of `chartroom login` that choose the source of the token. */
interface LoginFlags {
  readonly paste?: boolean;
  readonly device?: boolean;
}

/** Declares `chartroom login` and `chartroom logout`. */
export function declareLogin(program: Command, terminal: Terminal): void {
  withSettings(
    program
      .command("login")
      .description("log in to a server in a browser, or with a token from standard input")
      .option("--paste", "prompt for an access token instead, without showing it")
      .option("--device", "log in through a browser even when standard input is not a terminal")
      .action(async ({ paste = false, device = false, ...flags }: ClientFlags & LoginFlags) => {
        const { env, input, output } = terminal;
        const place = { server: serverOf(flags, env), file: credentialsFile(env) };
        // Loaded on demand: a command does not load the modules of others.
        const { logIn } = await import("../client/login.ts");
        const isDevice = device || (input.isTTY === true && !paste);
        terminal.print(await logIn({ ...place, input, output, isDevice }));
        input.destroy();
      }),
    CLIENT_SETTINGS,
  );
  withSettings(
    program
      .command("logout")
      .description("remove the stored access token for a server")
      .action(async (flags: ClientFlags) => {
        const { env } = terminal;
        const { logOut } = await import("../client/login.ts");
        terminal.print(logOut({ server: serverOf(flags, env), file: credentialsFile(env) }));
      }),
    CLIENT_SETTINGS,
  );
}
