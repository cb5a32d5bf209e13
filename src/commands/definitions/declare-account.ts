import type { Command } from "commander";
import { type Flags, runOnData, type Terminal, withDataSettings } from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const work = () => import("../account.ts");

/** Declares `chartroom account ...` and `chartroom subscription ...`. */
export function declareAccount(program: Command, terminal: Terminal): void {
  const account = program.command("account").description("people's logins, above their organizations");
  withDataSettings(
    account
      .command("block <account>")
      .description("cut an account, by id or email, off at once; the server may be running")
      .requiredOption("--reason <text>", "why; kept in the audit trail")
      .action((named: string, { reason, ...flags }: Flags & { reason: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await work()).blockAsOperator(config, { account: named, reason }),
        ),
      ),
  );
  withDataSettings(
    account
      .command("unblock <account>")
      .description("give a blocked account, by id or email, its access again, and nothing else")
      .action((named: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) => (await work()).unblockAsOperator(config, named)),
      ),
  );
  withDataSettings(
    program
      .command("subscription")
      .description("what accounts pay for; blocking an account cancels it")
      .command("add")
      .description("add a subscription to an account and print its id")
      .requiredOption("--account <id or email>", "whose subscription")
      .requiredOption("--name <text>", "what it is called")
      .action(({ account: named, name, ...flags }: Flags & { account: string; name: string }) =>
        runOnData(terminal, flags, async (config) =>
          (await work()).addSubscription(config, { account: named, name }),
        ),
      ),
  );
}
