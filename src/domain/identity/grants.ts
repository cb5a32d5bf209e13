import type { Role } from "./caller.ts";

/** On which resources a role may do something: all of its organization, only its own, or none. */
export type Grant = "any" | "own" | "none";

/** Who may call an operation. */
export interface Permission {
  /** What is missing, as the metadata of PERMISSION_DENIED names it. */
  readonly permission: string;
  readonly grants: Readonly<Record<Role, Grant>>;
  /** What is the caller's own here; present where a role has no more than that. */
  readonly own?: string;
  /** What must hold besides. */
  readonly besides?: string;
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
/** What others made is for administrators. */
export const CREATORS: Grants = { ...MEMBERS, member: "own", service_account: "own" };
/** What concerns a person only, an administrator like everybody else. */
export const SELF: Grants = { ...NOBODY, administrator: "own", member: "own" };

/** What is the caller's own of most things. */
export const OWNED_BY_CREATOR = "what the caller made";
