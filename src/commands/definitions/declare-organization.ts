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
  const organization = program.command("organization").description("the organizations that share the server");
  withDataSettings(
    organization
      .command("create")
      .description("create an organization and print the first token of its administrator")
      .requiredOption("--name <text>", "its name, 3 to 255 characters")
      .requiredOption("--email <address>", "its administrator; the account is created if there is none")
      .option(
        "--administrator-name <text>",
        "the person's name, for an account that is made",
        "Administrator",
      )
      .action(({ name, email, administratorName, ...flags }: Flags & OrganizationOptions) =>
        runOnData(terminal, flags, async (config) =>
          (await loadOrganizationCommands()).createOrganization(config, { name, email, administratorName }),
        ),
      ),
  );
  withDataSettings(
    organization
      .command("list")
      .description("list the organizations with their ids and stored bytes")
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
        "remove an organization with all its data; the end of its audit chain is recorded in the installation's. No server may be running",
      )
      .argument("<organization>", "its id, or its name while no other has the same")
      .option("--yes", "confirm it: only a backup brings the organization back", false)
      .option("--force", "also while environments or executions run", false)
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
      .description("mark an organization as enterprise, which some policies need, or remove the mark")
      .argument("<organization>", "its id, or its name while no other has the same")
      .addArgument(
        new Argument("<mark>", "on, or off: policies that need the mark go with it").choices(["on", "off"]),
      )
      .action((named: string, mark: string, flags: Flags) =>
        runOnData(terminal, flags, async (config) =>
          (await import("../enterprise.ts")).markEnterprise(config, named, mark === "on"),
        ),
      ),
  );
  const member = program.command("member").description("the members of organizations");
  withDataSettings(
    nameMembership(member.command("add"))
      .description("add a person to an organization and print the member's first token")
      .requiredOption("--name <text>", "the person's name; an existing account keeps its name")
      .addOption(roleOption().default("member"))
      .option("--trust-directory", "also a person whose address the SCIM of another organization has set")
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
        .description("print a link with which a member signs in once, within 15 minutes")
        .argument("<name>", "the member's user id, mail address or name")
        .option("--organization <id or name>", "which organization, where several have such a member")
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
      .description("list the members of an organization")
      .option("--organization <id or name>", "which organization, where there are several")
      .action(({ organization: named, ...flags }: Flags & Pick<MemberOptions, "organization">) =>
        listOnData(terminal, flags, async (config) =>
          (await loadMemberCommands()).listMembers(config, named),
        ),
      ),
  );
  withDataSettings(
    nameMembership(member.command("role"))
      .description("change the role of a member")
      .addOption(roleOption().makeOptionMandatory())
      .action(({ organization, email, role, ...flags }: Flags & RoleOptions) =>
        runOnData(terminal, flags, async (config) =>
          (await loadMemberCommands()).setRole(config, { organization, email, role }),
        ),
      ),
  );
  withDataSettings(
    nameMembership(member.command("remove"))
      .description("remove a member: its tokens are deleted, and its executions and agents stop")
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
    .option("--organization <id or name>", "which organization, where there are several")
    .requiredOption("--email <address>", "the member's account; `member add` creates it if there is none");
}

function roleOption(): Option {
  return new Option("--role <role>", "the member's role").choices(["administrator", "member"]);
}
