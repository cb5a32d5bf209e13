import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { withoutDeceptiveText } from "../../text/deceptive-text.ts";

/** A rule that gives those who have a claim a role; the first that fits decides. */
export interface RoleRule {
  readonly claim: string;
  /** Compared whole: with the claim itself, or with the elements of a list. */
  readonly value: string;
  readonly role: OrganizationRole;
}

/** The settings for the people of a sign-in provider (docs/sign-in.md). */
export interface SignInRules {
  /** Stable name in the settings. */
  readonly id: string;
  readonly organizationId: string;
  /** Mail domains in lower case; empty for all. */
  readonly allowedDomains: readonly string[];
  readonly createsAccounts: boolean;
  readonly linksByEmail: boolean;
  /** Without any, the provider decides no roles. */
  readonly roles: readonly RoleRule[];
  /** True keeps out those whom no rule fits. */
  readonly refusesOthers: boolean;
  /** The claim that names the groups of a person; empty where the provider decides none. */
  readonly groupsClaim: string;
}

/** The claims of a provider about a person, in tokens that it signed. */
export interface ProviderClaims {
  readonly issuer: string;
  /** The id of the person at the issuer, which with it is the identity. */
  readonly subject: string;
  /** Empty where the provider names none. */
  readonly email: string;
  readonly emailVerified: boolean;
  readonly name: string;
  /** Id of the provider's own session. */
  readonly sessionId: string | undefined;
  readonly all: Readonly<Record<string, unknown>>;
}

/** The reasons for which a person with a valid provider login is not signed in; docs/sign-in.md lists the remedies. */
export type SignInProblem =
  | "expired"
  | "provider_failed"
  | "provider_refused"
  | "address_unverified"
  | "domain_not_allowed"
  | "address_taken"
  | "no_account"
  | "scim_only"
  | "no_role"
  | "not_member"
  | "blocked"
  | "signed_in"
  | "no_tls";

/** The error of a sign-in that fails. It contains no text of the provider or of a token. */
export class SignInRefused extends Error {
  override readonly name = "SignInRefused";
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem, options?: ErrorOptions) {
    super(`sign-in refused: ${problem}`, options);
    this.problem = problem;
  }
}

/** A subject (OpenID Connect Core, 2): at most 255 characters of ASCII. */
const SUBJECT = /^[ -~]{1,255}$/;

/** Maximum length of a mail address (RFC 5321, 4.5.3.1.3), and of the name of an account. */
const MAX_EMAIL = 254;
const MAX_NAME = 200;

/**
 * Returns the claims of an ID token, completed by those of the userinfo endpoint. Both may contain an address, and
 * different ones, so the address counts as verified only if a source that names this address says so.
 */
export function mergeClaims(
  token: Readonly<Record<string, unknown>>,
  userinfo: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const email = token.email ?? userinfo.email;
  const named = [token, userinfo].find((each) => each.email === email && each.email_verified !== undefined);
  return { ...userinfo, ...token, email, email_verified: named?.email_verified };
}

/** Returns the relevant ones of a provider's claims. @throws SignInRefused when they identify nobody */
export function readClaims(all: Readonly<Record<string, unknown>>): ProviderClaims {
  const text = (name: string) => (typeof all[name] === "string" ? (all[name] as string) : "");
  const [issuer, subject] = [text("iss"), text("sub")];
  if (issuer === "" || !SUBJECT.test(subject)) {
    const cause = new Error(
      "the claims have no issuer, or no subject of 1 to 255 printable ASCII characters",
    );
    throw new SignInRefused("provider_failed", { cause });
  }
  const email = isAddress(text("email")) ? text("email") : "";
  return {
    issuer,
    subject,
    email,
    // Some providers send the text "true"; any other value does not count as verified.
    emailVerified: email !== "" && (all.email_verified === true || all.email_verified === "true"),
    name: nameIn(text("name")) || nameIn(text("preferred_username")) || nameIn(email),
    sessionId: text("sid") || undefined,
    all,
  };
}

/** Returns whether a text is a mail address that accounts can have. */
function isAddress(text: string): boolean {
  const isReadable = withoutDeceptiveText(text) === text;
  return isReadable && text.length <= MAX_EMAIL && /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(text);
}

/** Returns a name as others will read it: people choose their own at many providers. */
function nameIn(text: string): string {
  const line = withoutDeceptiveText(text).replace(/\p{Cc}/gu, " ");
  return [...line.trim()].slice(0, MAX_NAME).join("");
}

/** Returns the domain of a mail address, in lower case. */
export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf("@") + 1).toLowerCase();
}

/** Requires an address of an allowed domain. @throws SignInRefused */
export function requireAllowedDomain({ allowedDomains }: SignInRules, claims: ProviderClaims): void {
  if (allowedDomains.length === 0) return;
  if (!claims.emailVerified) throw new SignInRefused("address_unverified");
  if (!allowedDomains.includes(domainOf(claims.email))) throw new SignInRefused("domain_not_allowed");
}

/** The facts of an account that decide whether a verified address links an identity to it. */
export interface LinkedAccount {
  readonly isAdministrator: boolean;
  readonly hasIdentity: boolean;
  /** The organization whose SCIM has set its address; null for none. */
  readonly scimOrganizationId: string | null;
}

/**
 * Requires that an identity may be linked to an existing account. An address that the SCIM client of another
 * organization has set is not trusted, because that organization could assign it to anybody.
 *
 * @throws SignInRefused
 */
export function requireLinkable(
  { linksByEmail, organizationId }: SignInRules,
  { isAdministrator, hasIdentity, scimOrganizationId }: LinkedAccount,
): void {
  const isForeign = scimOrganizationId !== null && scimOrganizationId !== organizationId;
  if (!linksByEmail || isAdministrator || hasIdentity || isForeign) throw new SignInRefused("address_taken");
}

/** Requires that a provider may create accounts for new people. @throws SignInRefused */
export function requireCreation(
  rules: SignInRules,
  claims: ProviderClaims,
  policies: { readonly restrictAccountCreationToScim?: boolean | undefined },
): void {
  if (policies.restrictAccountCreationToScim) throw new SignInRefused("scim_only");
  if (!rules.createsAccounts) throw new SignInRefused("no_account");
  if (!claims.emailVerified) throw new SignInRefused("address_unverified");
}

/**
 * Returns the role according to the claims; undefined if the provider does not decide roles.
 * @throws SignInRefused for a person who matches no rule, if the settings reject such people
 */
export function roleOf(rules: SignInRules, { all }: ProviderClaims): OrganizationRole | undefined {
  if (rules.roles.length === 0) return undefined;
  const fitting = rules.roles.find(({ claim, value }) => valuesOf(all, claim).includes(value));
  if (!fitting && rules.refusesOthers) throw new SignInRefused("no_role");
  return fitting?.role ?? OrganizationRole.MEMBER;
}

/** Maximum number of groups of one sign-in; groups that do not exist are created. */
const MAX_CLAIMED_GROUPS = 200;

/** Returns the names of the groups in the claims, at most 200; undefined if the provider does not decide groups. */
export function groupNamesOf(
  { groupsClaim }: SignInRules,
  { all }: ProviderClaims,
): readonly string[] | undefined {
  if (groupsClaim === "") return undefined;
  return valuesOf(all, groupsClaim).slice(0, MAX_CLAIMED_GROUPS);
}

function valuesOf(all: ProviderClaims["all"], claim: string): readonly string[] {
  const value = Object.hasOwn(all, claim) ? all[claim] : undefined;
  return [value].flat().filter((each) => typeof each === "string");
}
