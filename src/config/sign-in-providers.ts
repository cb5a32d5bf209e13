import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type { RoleRule, SignInRules } from "../domain/identity/sign-in/provider.ts";
import { Fields, readIssuer } from "./json-fields.ts";
import { ConfigError, type Environment } from "./settings.ts";

/** A sign-in provider in the settings (docs/sign-in.md). */
export interface SignInProvider extends SignInRules {
  /** The label of its button. */
  readonly name: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  readonly clientAuthentication: "basic" | "post";
  readonly scopes: readonly string[];
}

/** Maximum number of providers: each has a button on the sign-in page. */
const MAX_PROVIDERS = 20;

const ROLES: Readonly<Record<string, OrganizationRole>> = {
  administrator: OrganizationRole.ADMIN,
  member: OrganizationRole.MEMBER,
};

/**
 * Reads the file of `--sign-in-providers`, with the secrets that it names.
 *
 * @param file empty for no providers
 * @throws ConfigError with every problem; none of them shows a secret
 */
export function readSignInProviders(file: string, env: Environment): readonly SignInProvider[] {
  if (file === "") return [];
  const problem = (text: string) => `--sign-in-providers ${file}: ${text}`;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ConfigError([problem(`cannot be read as JSON (${(error as Error).message})`)]);
  }
  const top = new Fields(value, "", ["providers"]);
  const list = top.list("providers");
  const read = list.map((each, index) => readProvider(each, `providers[${index}]`, dirname(file), env));
  const ids = read.map(({ provider }) => provider.id);
  const problems = [...top.problems, ...read.flatMap((each) => each.problems)];
  if (list.length > MAX_PROVIDERS) problems.push(`providers: at most ${MAX_PROVIDERS}`);
  if (new Set(ids).size < ids.length) problems.push("providers: every id must be another one");
  if (problems.length > 0) throw new ConfigError(problems.map(problem));
  return read.map(({ provider }) => provider);
}

function readProvider(value: unknown, place: string, folder: string, env: Environment) {
  const fields = new Fields(value, place, [
    ...["id", "name", "issuer", "clientId", "clientSecretFile", "clientSecretVariable"],
    ...["clientAuthentication", "scopes", "organizationId", "allowedDomains", "createAccounts"],
    ...["linkByEmail", "roles", "others", "groupsClaim"],
  ]);
  const id = fields.text("id", /^[a-z0-9][a-z0-9-]{0,31}$/, "1 to 32 lower-case letters, digits and hyphens");
  const name = fields.text("name", /^[^\p{Cc}]{1,64}$/u, "1 to 64 characters, or left out", id || "provider");
  const scopes = fields.list("scopes", ["openid", "email", "profile"]);
  if (!scopes.includes("openid") || !scopes.every((each) => /^[!#-[\]-~]+$/.test(String(each))))
    fields.complain("scopes", 'must list scopes, "openid" among them');
  const others = fields.text("others", /^(member|refuse)$/, '"member" or "refuse"', "member");
  const domains = fields.list("allowedDomains").map((each) => String(each).toLowerCase());
  if (!domains.every((each) => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(each)))
    fields.complain("allowedDomains", "must list mail domains such as example.org");
  const provider: SignInProvider = {
    ...{ id, name, scopes: scopes.map(String), allowedDomains: domains },
    issuer: readIssuer(fields),
    clientId: fields.text("clientId", /^[ -~]{1,256}$/, "the id that the provider has given this server"),
    clientSecret: readSecret(fields, folder, env),
    clientAuthentication: fields.text(
      ...(["clientAuthentication", /^(basic|post)$/, '"basic" or "post"', "basic"] as const),
    ) as "basic" | "post",
    organizationId: fields
      .text(
        "organizationId",
        /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
        "the id of an organization: chartroom organization list shows them",
      )
      .toLowerCase(),
    createsAccounts: fields.flag("createAccounts", true),
    linksByEmail: fields.flag("linkByEmail", false),
    roles: fields.list("roles").flatMap((each, index) => readRule(each, `${place}.roles[${index}]`, fields)),
    refusesOthers: others === "refuse",
    groupsClaim: fields.text("groupsClaim", /^.{0,100}$/, "the name of a claim, or left out", ""),
  };
  return { provider, problems: fields.problems };
}

function readSecret(fields: Fields, folder: string, env: Environment): string | undefined {
  const file = fields.text("clientSecretFile", /^[^\0]*$/, "the path of a file", "");
  const variable = fields.text("clientSecretVariable", /^\w*$/, "the name of a variable", "");
  if (file !== "" && variable !== "") {
    fields.complain("clientSecretFile", "and clientSecretVariable: name one of them");
    return undefined;
  }
  if (file === "" && variable === "") return undefined;
  let secret = env[variable]?.trim() ?? "";
  if (file !== "") {
    try {
      secret = readFileSync(resolve(folder, file), "utf8").trim();
    } catch (error) {
      fields.complain("clientSecretFile", `cannot be read: ${(error as Error).message}`);
      return undefined;
    }
  }
  const name = file === "" ? "clientSecretVariable" : "clientSecretFile";
  if (secret === "") fields.complain(name, `holds nothing: put the client's secret into ${file || variable}`);
  return secret;
}

function readRule(value: unknown, place: string, provider: Fields): readonly RoleRule[] {
  const fields = new Fields(value, place, ["claim", "value", "role"]);
  const rule = {
    claim: fields.text("claim", /^.{1,100}$/, "the name of a claim"),
    value: fields.text("value", /^.{1,500}$/, "the value that the claim has, or that its list holds"),
    role: ROLES[fields.text("role", /^(administrator|member)$/, '"administrator" or "member"')],
  };
  provider.problems.push(...fields.problems);
  return rule.role === undefined ? [] : [{ ...rule, role: rule.role }];
}
