import type { Command } from "commander";
import { type Flags, runOnData, type Terminal, withDataSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadAccountCommands = () => import("../account.ts");

/** Declares `chartroom account ...` and `chartroom subscription ...`. */
export function declareAccount(program: Command, terminal: Terminal): void {
  const account = program
    .command("account")
    .description("manage accounts: logins of people, who can be members of several organizations");
  withDataSettings(
    account
      .command("block <account>")
      .description("block an account by id or email; works while the server is running")
      .requiredOption("--reason <text>", "reason to record in the audit log")
      .action((named: string, { reason, ...flags }: Flags & { reason: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await loadAccountCommands()).blockAsOperator(config, { account: named, reason }),
        ),
      ),
  );
  withDataSettings(
    account
      .command("unblock <account>")
      .description("unblock an account by id or email; anything that the block stopped stays stopped")
      .action((named: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) =>
          (await loadAccountCommands()).unblockAsOperator(config, named),
        ),
      ),
  );
  withDataSettings(
    program
      .command("subscription")
      .description("manage subscriptions of accounts; blocking an account cancels them")
      .command("add")
      .description("add a subscription to an account and print its id")
      .requiredOption("--account <id or email>", "account to add it to")
      .requiredOption("--name <text>", "name of the subscription")
      .action(({ account: named, name, ...flags }: Flags & { account: string; name: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await loadAccountCommands()).addSubscription(config, { account: named, name }),
        ),
      ),
  );
}
