import {
  clone,
  create,
  type DescMessage,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { ContextKey, ContextValues, HandlerContext } from "@connectrpc/connect";
import { ChangedResourceSchema } from "#gen/service/v1/resource_pb.js";
import type { ResourceChange } from "#gen/service/v1/resource_service_pb.js";
import { requireChangedFit } from "../../../domain/access/resource-changes.ts";
import { DomainError } from "../../../domain/error.ts";
import { requireGranted } from "../../../domain/identity/ownership.ts";
import { requireNotRevoked } from "../../call/authenticated-caller.ts";
import { operationOf, type SharedWrite, sharedWriteKey } from "../../call/call.ts";
import { CHANGE_KINDS } from "./change-kinds.ts";

/** Executes the request of an operation. */
export type Operation = (request: Message, ctx: HandlerContext) => object | Promise<object>;

/** Returns the function that executes a unary operation of the contract. */
export type FindOperation = (method: DescMethodUnary) => Operation;

type Changed = MessageInitShape<typeof ChangedResourceSchema>;

/**
 * Makes changes in order and in one write, each as its own operation would.
 *
 * @throws DomainError of the operation, with the position of the change in its metadata
 */
export async function makeChanges(
  findOperation: FindOperation,
  ctx: HandlerContext,
  shared: SharedWrite,
  changes: readonly ResourceChange[],
): Promise<Changed[]> {
  const ids = new Map<string, string>();
  const granted = new Set<DescMethodUnary>();
  const made: Changed[] = [];
  let bytes = 0;
  for (const [index, change] of changes.entries()) {
    // Other writes wait for this one, so stop when the caller no longer waits.
    ctx.signal.throwIfAborted();
    try {
      const changed = await makeChange(findOperation, ctx, shared, change, { ids, granted });
      bytes += toBinary(ChangedResourceSchema, create(ChangedResourceSchema, changed)).length;
      requireChangedFit(bytes);
      made.push(changed);
    } catch (error) {
      if (error instanceof DomainError)
        Object.assign(error, { metadata: { ...error.metadata, change: String(index) } });
      throw error;
    }
  }
  return made;
}

/** The state after the changes so far. */
interface Progress {
  /** Ids of created resources, by placeholder. */
  readonly ids: Map<string, string>;
  /** Operations that the caller may call. */
  readonly granted: Set<DescMethodUnary>;
}

async function makeChange(
  findOperation: FindOperation,
  ctx: HandlerContext,
  shared: SharedWrite,
  { placeholderId, change }: ResourceChange,
  { ids, granted }: Progress,
): Promise<Changed> {
  if (change.case === undefined) throw new Error("a change without a request passed its constraints");
  const { tx, caller } = shared;
  const { method, idField, read } = CHANGE_KINDS[change.case];
  const part = partOf(ctx, method, shared);
  if (!granted.has(method)) await requireStillGranted(shared, operationOf(part));
  granted.add(method);
  // Copied, since a write may run again with other ids for the placeholders.
  const request = copyWithIds(method.input, change.value, ids);
  const knownId = idField && String((request as unknown as Record<string, unknown>)[idField]);
  const before = knownId ? await read(tx.db, caller, knownId) : undefined;
  const response = await findOperation(method)(request, part);
  const resourceId = knownId || createdId(response);
  if (!knownId && placeholderId !== "") ids.set(placeholderId, resourceId);
  const after = await read(tx.db, caller, resourceId);
  return { resourceId, ...(before && { before }), ...(after && { after }) };
}

/** Requires that the caller may still call an operation. @throws DomainError PERMISSION_DENIED */
async function requireStillGranted({ tx, caller }: SharedWrite, operation: string): Promise<void> {
  requireGranted(operation, caller);
  await requireNotRevoked(tx, caller, operation);
}

/** Returns the context of an operation that is a part of another one's write. */
function partOf(ctx: HandlerContext, method: DescMethodUnary, shared: SharedWrite): HandlerContext {
  const values: ContextValues = {
    get<T>(key: ContextKey<T>): T {
      return key.id === sharedWriteKey.id ? (shared as T) : ctx.values.get(key);
    },
    set(key, value) {
      ctx.values.set(key, value);
      return values;
    },
    delete(key) {
      ctx.values.delete(key);
      return values;
    },
  };
  const { signal, requestMethod, requestHeader, protocolName, url } = ctx;
  return {
    ...{ method, service: method.parent, values, signal, requestMethod, requestHeader, protocolName, url },
    timeoutMs: () => ctx.timeoutMs(),
    // Headers of this part, which are not sent.
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
  };
}

/** Returns the id in the response of an operation that creates a resource: its own field, or that of the resource. */
function createdId(response: object): string {
  if ("id" in response) return String(response.id);
  const [resource] = Object.values(response) as { readonly id: string }[];
  if (!resource) throw new Error("an operation that creates answered without what it created");
  return resource.id;
}

function copyWithIds<D extends DescMessage>(
  schema: D,
  request: Message,
  ids: ReadonlyMap<string, string>,
): MessageShape<D> {
  const copy = clone(schema, request as MessageShape<D>);
  if (ids.size > 0) replaceIds(copy, ids);
  return copy;
}

/** Replaces each text in a message that is a key of `ids`, at any depth. */
function replaceIds(within: object, ids: ReadonlyMap<string, string>): void {
  const holder = within as Record<string, unknown>;
  for (const [key, value] of Object.entries(holder)) {
    if (typeof value === "string") holder[key] = ids.get(value) ?? value;
    else if (typeof value === "object" && value !== null && !(value instanceof Uint8Array))
      replaceIds(value, ids);
  }
}
