import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { type ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { contentTypeUnaryJson } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../domain/caller.ts";
import { permissionOf } from "../domain/permissions.ts";
import { callerKey, operationOf } from "../services/call.ts";
import { answer } from "./error.ts";
import type { Route } from "./routes.ts";

/** A request that no operation can take, and what HTTP says about it. */
export interface Misdirection {
  readonly error: ConnectError;
  readonly status: number;
  readonly header: Readonly<Record<string, string>>;
}

/** Why a request reaches no operation; undefined when it does. */
export function misdirection(
  route: Route | undefined,
  method: string,
  contentType: string,
): Misdirection | undefined {
  if (!route) {
    const message =
      "no operation is served under this path; operations are at /api/service.v1.<Service>/<Operation>";
    return { error: answer(ErrorReason.OPERATION_UNKNOWN, message), status: 404, header: {} };
  }
  if (method !== "POST") {
    const error = answer(ErrorReason.TRANSPORT_UNSUPPORTED, "operations are called with POST", {
      allowed: "POST",
    });
    return { error, status: 405, header: { allow: "POST" } };
  }
  if (!route.handle.supportedContentType(contentType)) {
    const message = `the content type is not one that operations take; send ${contentTypeUnaryJson}`;
    const error = answer(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed: contentTypeUnaryJson });
    return { error, status: 415, header: { "accept-post": contentTypeUnaryJson } };
  }
  return undefined;
}

/** What a draining server answers to calls that come late. */
export function shuttingDown(): ConnectError {
  return answer(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: call again, another instance or a restart will answer",
  );
}

/** Why a call must not go on; set before the protocol layer, which writes it in its own form. */
export const refusalKey = createContextKey<ConnectError | undefined>(undefined, { description: "refusal" });

/** Runs inside the protocol layer before anything of the body is read. */
export function enterGate(ctx: HandlerContext): void {
  const refusal = ctx.values.get(refusalKey);
  if (refusal) throw refusal;
  const caller = ctx.values.get(callerKey);
  if (!caller) return;
  const changes = ctx.method.idempotency !== Idempotency.NO_SIDE_EFFECTS;
  const refused = unpermitted(operationOf(ctx), caller, changes);
  if (refused) throw refused;
}

/**
 * Why a caller may not do an operation, whatever it is done to; undefined while it may.
 *
 * @param changes whether the operation has side effects
 */
export function unpermitted(operation: string, caller: Caller, changes: boolean): ConnectError | undefined {
  const needed = permissionOf(operation);
  if (needed && needed.grants[caller.role] === "none") {
    const { permission } = needed;
    return answer(ErrorReason.PERMISSION_DENIED, `the permission ${permission} is missing`, { permission });
  }
  if (changes && caller.readOnly) {
    return answer(ErrorReason.PERMISSION_DENIED, "the token is read-only: use one that may make changes", {
      permission: "write",
    });
  }
  return undefined;
}
