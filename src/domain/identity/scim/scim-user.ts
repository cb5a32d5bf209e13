import { valueTaken, valueUnusable } from "../../error.ts";
import { mailboxOf, toLowerAscii } from "../account.ts";
import {
  type Attributes,
  attributesOf,
  booleanOf,
  type PatchChange,
  requiredAttribute,
  type ScimResource,
  textOf,
} from "./scim-json.ts";

/** A user as SCIM shows it. */
export interface ScimUser {
  readonly id: string;
  /** The address of the account. */
  readonly userName: string;
  readonly name: string;
  readonly active: boolean;
  /** Id of the user at the provider; empty for none. */
  readonly externalId: string;
  /** Milliseconds since 1970 UTC. */
  readonly createdAt: number;
}

/** The user of a request. */
export interface ScimUserValues extends Pick<ScimUser, "userName" | "name" | "externalId"> {
  /** Undefined if the request does not contain it, so that it does not change. */
  readonly active: boolean | undefined;
}

/**
 * Returns whether a verified address is that of a user. Letter case matters in local parts, except for users that a SCIM
 * provider manages under an id of its own: their user names ignore letter case (RFC 7643, 4.1.1).
 */
export function isAddressOf({ userName, externalId }: ScimUser, email: string): boolean {
  if (mailboxOf(userName) === mailboxOf(email)) return true;
  return externalId !== "" && toLowerAscii(userName) === toLowerAscii(email);
}

export const USER_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User";

const MAX_NAME_CHARACTERS = 255;
const ADDRESS = /^[^\s@]+@[^\s@]+$/;

/** Returns the user in the body of a POST or PUT. @throws DomainError VALUE_UNUSABLE, BODY_MALFORMED */
export function scimUserValues(body: unknown): ScimUserValues {
  const attributes = attributesOf(body);
  const userName = addressOf(attributes.get("username"));
  return {
    userName,
    name: nameIn(attributes) ?? userName,
    active: attributes.has("active") ? booleanOf("active", attributes.get("active")) : undefined,
    externalId: textOf("externalId", attributes.get("externalid")) ?? "",
  };
}

/**
 * Returns a user after the changes of a PATCH. Attributes that the server does not store are ignored.
 * @throws DomainError VALUE_UNUSABLE
 */
export function patchedUserValues(
  { userName, name, externalId }: Omit<ScimUserValues, "active">,
  changes: readonly PatchChange[],
): ScimUserValues {
  // A name that is given as a whole counts before its parts, in whichever order they come.
  const whole = changes.find(({ path, op }) => path === "displayname" && op !== "remove");
  // A blocked account is shown as not active: to repeat that would suspend the member, too.
  const before: ScimUserValues = { userName, name, externalId, active: undefined };
  return changes.reduce((values, change) => patched(values, change, whole !== undefined), before);
}

function patched(values: ScimUserValues, { op, path, value }: PatchChange, hasName: boolean): ScimUserValues {
  if (op === "remove") {
    if (path === "username") throw requiredAttribute("userName");
    if (path === "active") throw valueUnusable("path", "active cannot be removed");
    return path === "externalid" ? { ...values, externalId: "" } : values;
  }
  switch (path) {
    case "active":
      return { ...values, active: booleanOf("active", value) };
    case "username":
      return { ...values, userName: addressOf(value) };
    case "externalid":
      return { ...values, externalId: textOf("externalId", value) ?? "" };
    case "displayname":
      return { ...values, name: textOf("displayName", value, MAX_NAME_CHARACTERS) || values.name };
    case "name":
      return hasName ? values : { ...values, name: nameOfParts(attributesOf(value)) ?? values.name };
    case "name.formatted":
      return hasName
        ? values
        : { ...values, name: textOf("name.formatted", value, MAX_NAME_CHARACTERS) || values.name };
    case "name.givenname":
    case "name.familyname":
      return hasName ? values : { ...values, name: withPart(values.name, path, textOf(path, value) ?? "") };
    default:
      return values;
  }
}

function addressOf(value: unknown): string {
  const userName = textOf("userName", value, 254);
  if (userName !== undefined && ADDRESS.test(userName)) return userName;
  throw valueUnusable("userName", "userName must be an e-mail address of at most 254 characters");
}

function nameIn(attributes: Attributes): string | undefined {
  const displayName = textOf("displayName", attributes.get("displayname"), MAX_NAME_CHARACTERS);
  const parts = attributes.get("name");
  return displayName || (parts ? nameOfParts(attributesOf(parts)) : undefined);
}

function nameOfParts(parts: Attributes): string | undefined {
  const formatted = textOf("name.formatted", parts.get("formatted"), MAX_NAME_CHARACTERS);
  if (formatted) return formatted;
  const [given, family] = ["givenName", "familyName"].map((each) =>
    textOf(`name.${each}`, parts.get(each.toLowerCase()), 120),
  );
  return `${given ?? ""} ${family ?? ""}`.trim() || undefined;
}

/** Returns a name with another part: the text before its first space is the given name. */
function withPart(name: string, path: string, part: string): string {
  const [given = "", ...family] = name.split(" ");
  const parts = path === "name.givenname" ? [part, ...family] : [given, part];
  return textOf(path, parts.join(" ").trim(), MAX_NAME_CHARACTERS) || name;
}

/** Returns a user in the form of RFC 7643. @param location base URL of the server's SCIM */
export function scimUserJson(user: ScimUser, location: string): ScimResource {
  const { id, userName, name, active, externalId, createdAt } = user;
  return {
    schemas: [USER_SCHEMA],
    id,
    ...(externalId !== "" && { externalId }),
    userName,
    displayName: name,
    name: { formatted: name },
    active,
    emails: [{ value: userName, type: "work", primary: true }],
    meta: {
      resourceType: "User",
      created: new Date(createdAt).toISOString(),
      location: `${location}/Users/${id}`,
    },
  };
}

/** Requires that nobody has the address of a user. @param other the account that has it, if any @throws DomainError VALUE_TAKEN */
export function requireAddressFree(other: object | undefined): void {
  if (other) throw valueTaken("account", "userName", "an account with this address exists");
}

/** Requires that the address of an account may change. @throws DomainError VALUE_UNUSABLE */
export function requireOwnAccount(isOwn: boolean): void {
  if (isOwn) return;
  throw valueUnusable(
    "userName",
    "the account is a member of other organizations, too, or administers: its address stays",
  );
}
