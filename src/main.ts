import process from "node:process";
import { Command, InvalidArgumentError, Option } from "commander";
import { addSubscription, blockAsOperator, unblockAsOperator } from "./commands/account.ts";
import { verifyAudit } from "./commands/audit.ts";
import { rotateKeys } from "./commands/keys.ts";
import { StartError } from "./commands/open-data.ts";
import { serve } from "./commands/serve.ts";
import { createToken } from "./commands/token.ts";
import { type Config, ConfigError, readConfig, SETTINGS, type Setting, type SettingName } from "./config.ts";

type Flags = Partial<Record<SettingName, string | boolean>>;

const SETTING_ENTRIES = Object.entries(SETTINGS) as [SettingName, Setting<unknown>][];

/** The help names the variable and the default of each setting; the values are judged together by readConfig. */
function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const [name, setting] of SETTING_ENTRIES) {
    if (!names.includes(name)) continue;
    const flag = setting.argument ? `${setting.flag} <${setting.argument}>` : setting.flag;
    const facts = [setting.env, setting.default && `default ${setting.default}`].filter(Boolean).join(", ");
    command.addOption(new Option(flag, `${setting.help} (${facts})`));
  }
  return command;
}

async function runServer(flags: Flags): Promise<void> {
  const running = await serve(readConfig(flags, process.env), (text) => process.stdout.write(text));
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    running.stop().then(
      () => process.exit(0),
      (error) => fail(error),
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

async function runTokenCreate(
  flags: Flags & { user?: string; description: string; days: number; readOnly: boolean },
) {
  const { user, description, days, readOnly, ...settings } = flags;
  const config = readConfig(settings as Flags, process.env);
  process.stdout.write(
    `${await createToken(config, { ...(user && { user }), description, days, readOnly })}\n`,
  );
}

async function runAuditVerify(flags: Flags): Promise<void> {
  const { holds, text } = await verifyAudit(readConfig(flags, process.env));
  process.stdout.write(text);
  process.exitCode = holds ? 0 : 1;
}

/** Runs a command on the data folder and prints what it has to say. */
async function runOnData(flags: Flags, command: (config: Config) => Promise<string>): Promise<void> {
  process.stdout.write(await command(readConfig(flags, process.env)));
}

function days(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > 90)
    throw new InvalidArgumentError("1 to 90 whole days.");
  return number;
}

/** What the person can mend is a sentence; anything else is a fault and shows where. */
function fail(error: unknown): never {
  const known = error instanceof ConfigError || error instanceof StartError;
  process.stderr.write(`chartroom: ${known ? error.message : ((error as Error)?.stack ?? String(error))}\n`);
  process.exit(1);
}

const program = new Command("chartroom")
  .description(
    "A control plane for development environments and coding agents that a team runs on its own machines.",
  )
  .configureHelp({ showGlobalOptions: true })
  .addHelpText(
    "after",
    `
Settings of serve, each as a flag or an environment variable; the flag goes first:

${SETTING_ENTRIES.map(([, setting]) => {
  const flag = setting.argument ? `${setting.flag} <${setting.argument}>` : setting.flag;
  return `  ${flag}\n      ${setting.env}; default: ${setting.default || "none"}\n      ${setting.help}\n`;
}).join("")}`,
  );

withSettings(
  program
    .command("serve")
    .description(
      "start the server; the first start makes an organization, its administrator and one access token",
    )
    .action((flags: Flags) => runServer(flags)),
  SETTING_ENTRIES.map(([name]) => name),
);

withSettings(
  program
    .command("token")
    .description("access tokens, made by whoever runs the command line on the server's machine")
    .command("create")
    .description("print a new personal access token for a user; the server may be running")
    .option("--user <id or email>", "whose token; needed when there is more than one user")
    .option("--description <text>", "what the token is for", "made on the command line")
    .option("--days <number>", "how long it is valid, 1 to 90 days", days, 30)
    .option("--read-only", "may call only operations that change nothing", false)
    .action(runTokenCreate),
  ["dataDir", "keyFile"],
);

withSettings(
  program
    .command("audit")
    .description("the record of who did what")
    .command("verify")
    .description(
      "follow the audit chains of a data folder, or of a copy of one, and say where one breaks; exit code 1 when one does",
    )
    .action((flags: Flags) => runAuditVerify(flags)),
  ["dataDir", "keyFile"],
);

withSettings(
  program
    .command("keys")
    .description("the server's secrets, in the key file")
    .command("rotate")
    .description("make a new key and seal all credentials with it; no server may be running")
    .action((flags: Flags) => runOnData(flags, rotateKeys)),
  ["dataDir", "keyFile"],
);

const account = program.command("account").description("people's logins, above their organizations");

withSettings(
  account
    .command("block <account>")
    .description("cut an account, by id or email, off at once; the server may be running")
    .requiredOption("--reason <text>", "why; kept in the audit trail")
    .action((named: string, { reason, ...flags }: Flags & { reason: string }) =>
      runOnData(flags, (config) => blockAsOperator(config, { account: named, reason })),
    ),
  ["dataDir", "keyFile"],
);

withSettings(
  account
    .command("unblock <account>")
    .description("give a blocked account, by id or email, its access again, and nothing else")
    .action((named: string, flags: Flags) => runOnData(flags, (config) => unblockAsOperator(config, named))),
  ["dataDir", "keyFile"],
);

withSettings(
  program
    .command("subscription")
    .description("what accounts pay for; blocking an account cancels it")
    .command("add")
    .description("add a subscription to an account and print its id")
    .requiredOption("--account <id or email>", "whose subscription")
    .requiredOption("--name <text>", "what it is called")
    .action(({ account: named, name, ...flags }: Flags & { account: string; name: string }) =>
      runOnData(flags, (config) => addSubscription(config, { account: named, name })),
    ),
  ["dataDir", "keyFile"],
);

program.parseAsync(process.argv).catch(fail);
