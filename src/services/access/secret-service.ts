import { toJson } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import {
  type SecretService as Contract,
  type CreateSecretRequest,
  type DeleteSecretRequest,
  type ListSecretsRequest,
  ListSecretsRequest_FilterSchema,
  type UpdateSecretValueRequest,
} from "#gen/service/v1/secret_service_pb.js";
import { notFound } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { permissionOf } from "../../domain/identity/permissions.ts";
import { requireCredentialProxyKnown } from "../../domain/policy/proxied-secret/credential-proxy.ts";
import {
  maySeeSecretsOf,
  newSecret,
  ownerOf,
  ownerOfScope,
  requestedOwner,
  requireMayManage,
  requireMountable,
  requireRoomFor,
  type SecretOwner,
  updatedSecret,
  visibleKinds,
} from "../../domain/policy/secret.ts";
import { requireProjectNotPendingDeletion } from "../../domain/project/project.ts";
import { CREDENTIAL_PROXY_LEVEL, mayStore } from "../../store/feature-level.ts";
import { findMember } from "../../store/identity/member.ts";
import { findServiceAccount } from "../../store/identity/service-account.ts";
import {
  findSecret,
  findSecretPage,
  findSecretsOf,
  insertSecret,
  removeSecret,
  type StoredSecret,
  updateSecret,
} from "../../store/policy/secret.ts";
import { findProject } from "../../store/project/project.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { callerOf, operationOf, writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";
import { listPage } from "../call/page.ts";
import { sealSecretValue } from "../policy/secret-value.ts";
import { hasRole } from "../policy/shared-role.ts";

/** Serves secrets, whose values leave the server only to runners. */
export class SecretService implements ServiceImpl<typeof Contract> {
  readonly #deps: ServiceDependencies;

  constructor(deps: ServiceDependencies) {
    this.#deps = deps;
  }

  createSecret(req: CreateSecretRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      const project = { kind: "project", id: req.projectId.toLowerCase() } as const;
      if (req.projectId !== "") await requireOwnerExists(tx, caller, project);
      const owner = requestedOwner(req);
      await requireManagedOwner(tx, ctx, caller, owner);
      const context = { id: tx.newId(), owner, creator: caller.subject, now: tx.now };
      const secret = newSecret(req, context);
      if (secret.credentialProxy) requireCredentialProxyKnown(mayStore(tx, CREDENTIAL_PROXY_LEVEL));
      const stored = {
        secret,
        value: sealSecretValue(keys, secret.id, req.value),
        valueBytes: Buffer.byteLength(req.value),
      };
      requireRoomFor(stored, await findSecretsOf(tx.db, caller, [owner.id]));
      await insertSecret(tx, caller, stored);
      return { secret };
    });
  }

  updateSecretValue({ secretId, value }: UpdateSecretValueRequest, ctx: HandlerContext) {
    const { store, keys } = this.#deps;
    return writeAsCaller(store, ctx, async (tx, caller) => {
      const before = await getManagedSecret(tx, ctx, caller, secretId);
      requireMountable(before.secret, value);
      const after = {
        secret: updatedSecret(before.secret, tx.now),
        value: sealSecretValue(keys, before.secret.id, value),
        valueBytes: Buffer.byteLength(value),
      };
      requireRoomFor(after, await findSecretsOf(tx.db, caller, [ownerOf(after.secret).id]));
      await updateSecret(tx, caller, before, after);
      return {};
    });
  }

  async listSecrets({ filter, pagination }: ListSecretsRequest, ctx: HandlerContext) {
    const caller = callerOf(ctx);
    const owner = ownerOfScope(filter?.scope);
    if (owner?.kind === "organization" && owner.id !== caller.organizationId) throw notFound("organization");
    const visible = { kinds: visibleKinds(caller), ownerId: caller.subject.id };
    const projectIds = filter?.projectIds.map((id) => id.toLowerCase()) ?? [];
    const { rows, page } = await listPage(this.#deps, caller, {
      operation: "ListSecrets",
      parts: [visible, filter && toJson(ListSecretsRequest_FilterSchema, filter)],
      pagination,
      find: (db, after, limit) => findSecretPage(db, caller, { visible, owner, projectIds }, after, limit),
    });
    return { ...page, secrets: rows };
  }

  deleteSecret({ secretId }: DeleteSecretRequest, ctx: HandlerContext) {
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => {
      const { secret } = await getManagedSecret(tx, ctx, caller, secretId);
      await removeSecret(tx, caller, secret);
      return {};
    });
  }
}

/**
 * Returns a secret that the caller may change.
 *
 * @throws DomainError NOT_FOUND, also when the caller may not see it; PERMISSION_DENIED
 */
async function getManagedSecret(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  id: string,
): Promise<StoredSecret> {
  const stored = await findSecret(tx.db, caller, id);
  if (!stored || !maySeeSecretsOf(ownerOf(stored.secret), caller)) throw notFound("secret");
  await requireManagement(tx, ctx, caller, ownerOf(stored.secret));
  return stored;
}

/** @throws DomainError NOT_FOUND, PERMISSION_DENIED, PENDING_DELETION */
async function requireManagedOwner(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  owner: SecretOwner,
): Promise<void> {
  await requireOwnerExists(tx, caller, owner);
  await requireManagement(tx, ctx, caller, owner);
  const project = owner.kind === "project" && (await findProject(tx.db, caller, owner.id));
  if (project) requireProjectNotPendingDeletion(project);
}

async function requireManagement(
  tx: WriteTransaction,
  ctx: HandlerContext,
  caller: Caller,
  owner: SecretOwner,
): Promise<void> {
  const permission = permissionOf(operationOf(ctx))?.permission ?? "";
  const project = owner.kind === "project" ? await findProject(tx.db, caller, owner.id) : undefined;
  const needed = project && ({ type: "project", id: project.id, role: ResourceRole.ADMIN } as const);
  if (needed && (await hasRole(tx.db, caller, needed))) return;
  requireMayManage(permission, owner, caller, project?.metadata?.creator);
}

async function requireOwnerExists(tx: WriteTransaction, caller: Caller, { kind, id }: SecretOwner) {
  const exists = {
    organization: async () => id === caller.organizationId,
    project: () => findProject(tx.db, caller, id),
    user: () => findMember(tx.db, caller, id),
    service_account: () => findServiceAccount(tx.db, caller, id),
  };
  if (!(await exists[kind]())) throw notFound(kind.replace("_", " "));
}
