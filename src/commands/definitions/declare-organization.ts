import { Argument, type Command, Option } from "commander";
import { SETTINGS } from "../../config/config.ts";
import type { MemberOptions, NamedMember, RoleOptions } from "../member.ts";
import type { OrganizationOptions } from "../organization.ts";
import type { RemovalOptions } from "../remove-organization.ts";
import {
  type Flags,
  listOnData,
  runOnData,
  type Terminal,
  withDataSettings,
  withSettings,
} from "./command-line.ts";

// Loaded on demand: a command does not load the modules of others.
const loadOrganizationCommands = () => import("../organization.ts");
const loadMemberCommands = () => import("../member.ts");

/** Declares `chartroom organization ...` and `chartroom member ...`. */
export function declareOrganization(program: Command, terminal: Terminal): void {
  const organization = program.command("organization").description("manage the organizations on the server");
  withDataSettings(
    organization
      .command("create")
      .description("create an organization and print its administrator's first token")
      .requiredOption("--name <text>", "name of the organization, 3 to 255 characters")
      .requiredOption(
        "--email <address>",
        "email of its administrator; the account is created if it does not exist",
      )
      .option("--administrator-name <text>", "name of the administrator, for a new account", "Administrator")
      .action(({ name, email, administratorName, ...flags }: Flags & OrganizationOptions) =>
        runOnData(terminal, flags, async (config) =>
          (await loadOrganizationCommands()).createOrganization(config, { name, email, administratorName }),
        ),
      ),
  );
  withDataSettings(
    organization
      .command("list")
      .description("list organizations with their ids and stored bytes")
      .action((flags: Flags) =>
        listOnData(terminal, flags, async (config) =>
          (await loadOrganizationCommands()).listOrganizations(config),
        ),
      ),
  );
  withDataSettings(
    organization
      .command("remove")
      .description(
        "remove an organization and all its data; the end of its audit chain is recorded in the installation's chain. Stop all servers first",
      )
      .argument("<organization>", "id of the organization, or its name if that is unique")
      .option("--yes", "confirm the removal; only a backup can bring the organization back", false)
      .option("--force", "remove it even if environments or executions are running", false)
      .action((named: string, { yes, force, ...flags }: Flags & Omit<RemovalOptions, "named">) =>
        runOnData(terminal, flags, async (config) =>
          (await import("../remove-organization.ts")).removeOrganization(
            config,
            { named, yes, force },
            terminal.print,
          ),
        ),
      ),
  );
  withDataSettings(
    organization
      .command("enterprise")
      .description("turn the enterprise mark of an organization, which some policies require, on or off")
      .argument("<organization>", "id of the organization, or its name if that is unique")
      .addArgument(
        new Argument("<mark>", "on, or off, which also removes the policies that require the mark").choices([
          "on",
          "off",
        ]),
      )
      .action((named: string, mark: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) =>
          (await import("../enterprise.ts")).markEnterprise(config, named, mark === "on"),
        ),
      ),
  );
  const member = program.command("member").description("manage the members of organizations");
  withDataSettings(
    nameMembership(member.command("add"))
      .description("add a member to an organization and print the member's first token")
      .requiredOption("--name <text>", "name of the person; an existing account keeps its name")
      .addOption(roleOption().default("member"))
      .option("--trust-directory", "also accept an address that SCIM of another organization has set")
      .action(
        ({
          organization: named,
          email,
          name,
          role,
          trustDirectory = false,
          ...flags
        }: Flags & Omit<MemberOptions, "trustDirectory"> & { readonly trustDirectory?: boolean }) =>
          runOnData(terminal, flags, async (config) => {
            const person = { email, name, role, trustDirectory };
            return (await loadMemberCommands()).addMember(config, { organization: named, ...person });
          }),
      ),
  );
  const { baseUrl, host, port, tlsCert } = SETTINGS;
  withSettings(
    withDataSettings(
      member
        .command("sign-in")
        .description("print a one-time sign-in link for a member, valid for 15 minutes")
        .argument("<name>", "user id, email or name of the member")
        .option("--organization <id or name>", "organization; required if several have such a member")
        .action((named: string, { organization: of, ...flags }: Flags & { organization?: string }) =>
          runOnData(terminal, flags, async (config) =>
            (await loadMemberCommands()).printSignInLink(config, named, of),
          ),
        ),
    ),
    { baseUrl, host, port, tlsCert },
  );
  withDataSettings(
    member
      .command("list")
      .description("list members of an organization")
      .option("--organization <id or name>", "organization; required if there are several")
      .action(({ organization: named, ...flags }: Flags & Pick<MemberOptions, "organization">) =>
        listOnData(terminal, flags, async (config) =>
          (await loadMemberCommands()).listMembers(config, named),
        ),
      ),
  );
  withDataSettings(
    nameMembership(member.command("role"))
      .description("change a member's role")
      .addOption(roleOption().makeOptionMandatory())
      .action(({ organization, email, role, ...flags }: Flags & RoleOptions) =>
        runOnData(terminal, flags, async (config) =>
          (await loadMemberCommands()).setRole(config, { organization, email, role }),
        ),
      ),
  );
  withDataSettings(
    nameMembership(member.command("remove"))
      .description("remove a member: delete their tokens and stop their executions and agents")
      .action(({ organization, email, ...flags }: Flags & NamedMember) =>
        runOnData(terminal, flags, async (config) =>
          (await loadMemberCommands()).removeMember(config, { organization, email }),
        ),
      ),
  );
}

/** Adds the options that identify one membership. */
function nameMembership(command: Command): Command {
  return command
    .option("--organization <id or name>", "organization; required if there are several")
    .requiredOption(
      "--email <address>",
      "email of the member; `member add` creates the account if it does not exist",
    );
}

function roleOption(): Option {
  return new Option("--role <role>", "role of the member").choices(["administrator", "member"]);
}
