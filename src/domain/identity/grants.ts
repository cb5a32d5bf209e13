import type { Role } from "./caller.ts";

/**
 * The resources on which a role may do something: all of its organization, only its own, or none.
 */
export type Grant = "any" | "own" | "none";

/** The callers that may use an operation. */
export interface Permission {
  /** Name of the permission in the metadata of PERMISSION_DENIED. */
  readonly permission: string;
  readonly grants: Readonly<Record<Role, Grant>>;
  /** Definition of the caller's own resources; present where a role is limited to them. */
  readonly own?: string;
  /** A further condition. */
  readonly condition?: string;
}

export type Grants = Permission["grants"];

export const NOBODY: Grants = {
  administrator: "none",
  member: "none",
  service_account: "none",
  runner: "none",
  environment: "none",
  exchange: "none",
};
export const EVERY_RUNNER: Grants = { ...NOBODY, runner: "own" };
export const ADMINISTRATORS: Grants = { ...NOBODY, administrator: "any" };
export const PEOPLE: Grants = { ...NOBODY, administrator: "any", member: "any" };
export const MEMBERS: Grants = { ...PEOPLE, service_account: "any" };
/** Resources that others created are for administrators. */
export const CREATORS: Grants = { ...MEMBERS, member: "own", service_account: "own" };
/** Resources that concern one person only, an administrator like everybody else. */
export const SELF: Grants = { ...NOBODY, administrator: "own", member: "own" };

/** Definition of the caller's own resources in most rows. */
export const OWNED_BY_CREATOR = "what the caller made";

/** The same where a group may have the role for it. */
export const OWNED_OR_ADMINISTERED = `${OWNED_BY_CREATOR}, and what a group of it has the role \`admin\` on`;
export const OWNED_OR_USED =
  "what the caller made, and what a group of it has the role `use` on and does not run as another person";
