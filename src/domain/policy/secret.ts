import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { type Secret, SecretSchema, type SecretScope, SecretScopeSchema } from "#gen/service/v1/secret_pb.js";
import type { CreateSecretRequest } from "#gen/service/v1/secret_service_pb.js";
import { limitReached, notBuilt, permissionDenied, valueTaken, valueUnusable } from "../error.ts";
import type { Caller } from "../identity/caller.ts";
import { requireOwnershipFor } from "../identity/ownership.ts";
import { requireCredentialProxy, requireHeaderValue } from "./proxied-secret/credential-proxy.ts";

/** The kinds of owners of secrets, as rows name them. */
export type SecretOwnerKind = "organization" | "project" | "user" | "service_account";

/** The owner of a secret. */
export interface SecretOwner {
  readonly kind: SecretOwnerKind;
  readonly id: string;
}

const CASES = {
  organizationId: "organization",
  projectId: "project",
  userId: "user",
  serviceAccountId: "service_account",
} as const;

/** Returns the owner that a scope names; undefined for an empty scope. */
export function ownerOfScope(scope: SecretScope | undefined): SecretOwner | undefined {
  const named = scope?.scope;
  return named?.case === undefined ? undefined : { kind: CASES[named.case], id: named.value.toLowerCase() };
}

/** Returns the owner of a stored secret. */
export function ownerOf({ scope }: Secret): SecretOwner {
  const owner = ownerOfScope(scope);
  if (!owner) throw new Error("a stored secret has no scope");
  return owner;
}

/**
 * Returns the owner that a new secret gets: that of the scope, or the project of the deprecated
 * field.
 * @throws DomainError VALUE_UNUSABLE when there is none, or the two differ
 */
export function requestedOwner({
  scope,
  projectId,
}: Pick<CreateSecretRequest, "scope" | "projectId">): SecretOwner {
  const owner = ownerOfScope(scope);
  const project = projectId === "" ? undefined : { kind: "project" as const, id: projectId.toLowerCase() };
  if (owner && project && (owner.kind !== "project" || owner.id !== project.id))
    throw valueUnusable("projectId", "projectId and scope name different owners: leave projectId out");
  const found = owner ?? project;
  if (!found) throw valueUnusable("scope", "a secret needs a scope: whose secret it is");
  return found;
}

/** Names of environment variables that the runner sets itself, which secrets cannot use. */
const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "GIT_AUTHOR_EMAIL",
  "GIT_AUTHOR_NAME",
  "GIT_CEILING_DIRECTORIES",
  "GIT_COMMITTER_EMAIL",
  "GIT_COMMITTER_NAME",
  "HOME",
  "LANG",
  "PATH",
]);
const RESERVED_PREFIX = "CHARTROOM_";
/** The names that the contract (CreateSecretRequest) allows and that are valid for environment variables. */
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{2,126}$/;

/** Returns whether a secret can have this name and be mounted as an environment variable. */
export function isVariableSecretName(name: string): boolean {
  return VARIABLE_NAME.test(name) && !isReservedName(name);
}

/** Returns whether the runner sets an environment variable with this name itself. */
export function isReservedName(name: string): boolean {
  return RESERVED_NAMES.has(name) || name.startsWith(RESERVED_PREFIX);
}

/**
 * Returns the mount of a new secret.
 * @throws DomainError VALUE_UNUSABLE for a missing or invalid mount, NOT_BUILT for a registry's credentials
 */
function requireMount({ name, mount, credentialProxy }: CreateSecretRequest): Secret["mount"] {
  switch (mount.case) {
    case "filePath":
      requireFilePath(mount.value);
      return mount;
    case "environmentVariable":
      requireTrue(mount.case, mount.value);
      requireVariableName(name);
      return mount;
    case "apiOnly":
      requireTrue(mount.case, mount.value);
      return mount;
    case "containerRegistryBasicAuthHost":
      throw notBuilt(
        mount.case,
        "credentials of container registries are not built yet: mount the secret as an environment variable or a file",
      );
    default:
      // A secret without a mount can be used through the credential proxy.
      if (credentialProxy) return mount;
      throw valueUnusable(
        "environmentVariable",
        "a secret needs a mount, environmentVariable, filePath or apiOnly, or a credentialProxy",
      );
  }
}

function requireTrue(field: string, value: boolean): void {
  if (!value) throw valueUnusable(field, `${field} must be true where it is given`);
}

function requireVariableName(name: string): void {
  if (/^[0-9]/.test(name))
    throw valueUnusable("name", "the name of an environment variable must not begin with a digit");
  if (isReservedName(name))
    throw valueUnusable("name", "the runner sets an environment variable with this name itself");
}

function requireFilePath(path: string): void {
  const segments = path.split("/").slice(1);
  if (segments.some((segment) => segment === "" || segment === "." || segment === ".."))
    throw valueUnusable("filePath", "filePath must not have empty, . or .. segments");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are rejected.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(path))
    throw valueUnusable("filePath", "filePath must not contain control characters");
}

/**
 * Requires that a value can be mounted, or put into request headers by the credential proxy.
 * @throws DomainError VALUE_UNUSABLE
 */
export function requireMountable(
  { mount, credentialProxy }: Pick<Secret, "mount" | "credentialProxy">,
  value: string,
): void {
  if (credentialProxy) requireHeaderValue(value);
  if (mount.case === "environmentVariable" && value.includes("\0"))
    throw valueUnusable("value", "an environment variable cannot hold a value with U+0000");
}

/** The context of a new secret. */
export interface SecretContext {
  readonly id: string;
  readonly owner: SecretOwner;
  readonly creator: Caller["subject"];
  /** Milliseconds since 1970 UTC. */
  readonly now: number;
}

/**
 * Returns a new secret.
 * @throws DomainError VALUE_UNUSABLE for a mount that is not possible, NOT_BUILT
 */
export function newSecret(req: CreateSecretRequest, { id, owner, creator, now }: SecretContext): Secret {
  const { source } = req;
  if (source?.value.case === "verbatim") requireTrue("source.verbatim", source.value.value);
  const { credentialProxy } = req;
  const mount = requireMount(req);
  if (credentialProxy) requireCredentialProxy(credentialProxy);
  requireMountable({ mount, credentialProxy }, req.value);
  return create(SecretSchema, {
    id,
    name: req.name,
    projectId: owner.kind === "project" ? owner.id : "",
    createdAt: timestampFromMs(now),
    updatedAt: timestampFromMs(now),
    creator,
    mount,
    scope: toScope(owner),
    ...(credentialProxy && { credentialProxy }),
    source: { value: { case: "verbatim", value: true } },
  });
}

function toScope({ kind, id: value }: SecretOwner): SecretScope {
  switch (kind) {
    case "organization":
      return create(SecretScopeSchema, { scope: { case: "organizationId", value } });
    case "project":
      return create(SecretScopeSchema, { scope: { case: "projectId", value } });
    case "user":
      return create(SecretScopeSchema, { scope: { case: "userId", value } });
    case "service_account":
      return create(SecretScopeSchema, { scope: { case: "serviceAccountId", value } });
  }
}

/** Returns the secret after its value was replaced. */
export function updatedSecret(before: Secret, now: number): Secret {
  const after = clone(SecretSchema, before);
  after.updatedAt = timestampFromMs(now);
  return after;
}

/** Maximum number of secrets of one owner (contract, CreateSecret). */
const MAX_SECRETS_PER_OWNER = 100;

/** Maximum total size in bytes of an owner's values: an environment can hold those of three owners. */
const MAX_VALUE_BYTES_PER_OWNER = 262_144;

/** A secret of the same owner. */
interface Sibling {
  readonly secret: Pick<Secret, "id" | "name" | "mount">;
  readonly valueBytes: number;
}

/**
 * Requires that an owner may have a secret in addition to its others.
 * @throws DomainError VALUE_TAKEN, LIMIT_REACHED
 */
export function requireRoomFor({ secret, valueBytes }: Sibling, all: readonly Sibling[]): void {
  const others = all.filter((each) => each.secret.id !== secret.id);
  if (others.some((each) => each.secret.name === secret.name))
    throw valueTaken(
      "secret",
      "name",
      "the scope has a secret with this name: delete it first, or replace its value",
    );
  const path = filePathOf(secret);
  if (path !== undefined && others.some((each) => filePathOf(each.secret) === path))
    throw valueTaken("secret", "filePath", "the scope has a secret with this filePath: delete it first");
  if (others.length >= MAX_SECRETS_PER_OWNER)
    throw limitReached(
      "secret",
      MAX_SECRETS_PER_OWNER,
      `the scope has ${MAX_SECRETS_PER_OWNER} secrets, which is the maximum: delete one first`,
    );
  const bytes = others.reduce((sum, each) => sum + each.valueBytes, valueBytes);
  if (bytes > MAX_VALUE_BYTES_PER_OWNER)
    throw limitReached(
      "secret",
      MAX_VALUE_BYTES_PER_OWNER,
      `the values of the scope would have ${bytes} bytes together and may have ${MAX_VALUE_BYTES_PER_OWNER}: delete a secret first`,
      "bytes",
    );
}

function filePathOf({ mount }: Pick<Secret, "mount">): string | undefined {
  return mount.case === "filePath" ? mount.value : undefined;
}

/** Returns the kinds of owners of which a caller may see every owner's secrets. */
export function visibleKinds({ role }: Pick<Caller, "role">): readonly SecretOwnerKind[] {
  return role === "administrator"
    ? ["organization", "project", "service_account"]
    : ["organization", "project"];
}

/** Returns whether a caller may see the secrets of an owner. */
export function maySeeSecretsOf(owner: SecretOwner, caller: Pick<Caller, "role" | "subject">): boolean {
  return visibleKinds(caller).includes(owner.kind) || owner.id === caller.subject.id;
}

/**
 * Requires that a caller may create, change and delete the secrets of an owner.
 * @param projectCreator creator of the project; undefined for other kinds of owners
 * @throws DomainError PERMISSION_DENIED
 */
export function requireMayManage(
  permission: string,
  { kind, id }: SecretOwner,
  caller: Caller,
  projectCreator: Caller["subject"] | undefined,
): void {
  if (kind === "project") {
    requireOwnershipFor("service.v1.ProjectService/UpdateProject", caller, projectCreator);
    return;
  }
  if (kind === "user") {
    if (caller.subject.id === id && caller.subject.principal === Principal.USER) return;
    throw permissionDenied(permission, "the secrets of a user are for that user alone");
  }
  if (caller.role === "administrator") return;
  throw permissionDenied(permission, "the secrets of this scope are for administrators");
}
