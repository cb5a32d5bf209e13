import { type Command, InvalidArgumentError } from "commander";
import { accessOf, CLIENT_SETTINGS, type ClientFlags } from "../client/server-access.ts";
import type { TokenOptions } from "../token.ts";
import {
  type Flags,
  listOnData,
  numberOption,
  runOnData,
  type Terminal,
  withDataSettings,
  withSettings,
} from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadTokenCommands = () => import("../token.ts");

type RenewFlags = ClientFlags & { readonly days?: number; readonly json?: boolean };

/** Declares `chartroom token ...`. */
export function declareToken(program: Command, terminal: Terminal): void {
  const token = program.command("token").description("manage access tokens");
  withDataSettings(
    token
      .command("create")
      .description(
        "create a personal access token for a user and print it; works while the server is running",
      )
      .option("--user <id or email>", "owner of the token; required if there are several users")
      .option("--description <text>", "what the token is for", "made on the command line")
      .option("--days <number>", "validity in days, 1 to 90", days, 30)
      .option("--read-only", "allow only operations that change nothing", false)
      .action(({ user, description, days, readOnly, ...flags }: Flags & TokenOptions) =>
        runOnData(terminal, flags, async (config) =>
          (await loadTokenCommands()).createAccessToken(config, {
            ...(user && { user }),
            description,
            days,
            readOnly,
          }),
        ),
      ),
  );
  withDataSettings(
    token
      .command("list")
      .description("list access tokens of users and service accounts, without their values")
      .option("--user <id or email>", "only tokens of this user")
      .action(({ user, ...flags }: Flags & { user?: string }) =>
        listOnData(terminal, flags, async (config) => (await loadTokenCommands()).listTokens(config, user)),
      ),
  );
  withDataSettings(
    token
      .command("revoke <id>")
      .description("revoke an access token by id; the next request with it is rejected")
      .action((id: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) => (await loadTokenCommands()).revokeToken(config, id)),
      ),
  );
  withSettings(
    token
      .command("renew")
      .description("renew one of your personal access tokens; its value stays the same")
      .argument("[id]", "id of the token; by default, the token that this command uses")
      .option(
        "--days <number>",
        "validity from now in days, 1 to 90; by default 30, or 90 if the token expires later than in 30 days",
        numberOption("--days", 1, 90),
      )
      .option("--json", "print a service.v1.PersonalAccessToken as JSON")
      .action(async (id: string | undefined, { days, json, ...flags }: RenewFlags) => {
        const access = accessOf(flags, terminal);
        const { renewalJson, renewalText, renewToken } = await import("../client/renew-token.ts");
        const renewed = await renewToken(access, { id, days });
        terminal.print(json ? renewalJson(renewed) : renewalText(renewed));
      }),
    CLIENT_SETTINGS,
  );
}

function days(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > 90)
    throw new InvalidArgumentError("1 to 90 whole days.");
  return number;
}
