import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { type ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { contentTypeStreamJson, contentTypeUnaryJson } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Caller } from "../../domain/identity/caller.ts";
import { permissionOf } from "../../domain/identity/permissions.ts";
import { callerKey, operationOf } from "../../services/call/call.ts";
import { writeConnectError } from "../error/error.ts";
import type { Route } from "../routes.ts";
import { isResumable } from "../stream/stream-positions.ts";

/** Advice for clients that want a stream without its protocols. */
const PLAIN = "or send application/json and the header Accept: text/event-stream or application/x-ndjson, ";

/** A request that no operation accepts, and the HTTP status for it. */
export interface RoutingError {
  readonly error: ConnectError;
  readonly status: number;
  readonly header: Readonly<Record<string, string>>;
}

/**
 * Returns why a request reaches no operation; undefined when it does.
 *
 * @param suggestion the operation that the path most likely means; undefined when
 *   none is similar
 */
export function routingError(
  route: Route | undefined,
  method: string,
  contentType: string,
  suggestion: () => string | undefined,
): RoutingError | undefined {
  if (!route) {
    const near = suggestion();
    const instead = near
      ? `did you mean /api/${near}?`
      : "operations are at /api/service.v1.<Service>/<Operation>";
    const error = writeConnectError(
      ErrorReason.OPERATION_UNKNOWN,
      `no operation is served under this path; ${instead}`,
      near ? { suggestion: near } : {},
    );
    return { error, status: 404, header: {} };
  }
  if (method !== "POST") {
    const also = isResumable(route.handle.method)
      ? ", and streams also with GET and the header Accept: text/event-stream or application/x-ndjson"
      : "";
    const message = `operations are called with POST${also}`;
    const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed: "POST" });
    return { error, status: 405, header: { allow: "POST" } };
  }
  // The library counts gRPC-Web in base64 among the types that it supports, and answers it with an empty 415.
  if (!route.handle.supportedContentType(contentType) || /^application\/grpc-web-text/i.test(contentType)) {
    const isStream = route.handle.method.methodKind !== "unary";
    const allowed = isStream ? contentTypeStreamJson : contentTypeUnaryJson;
    const message = isStream
      ? `${route.handle.method.name} streams: send ${allowed}, each message behind five bytes that give its length, ` +
        `${isResumable(route.handle.method) ? PLAIN : ""}or call it with a generated client; docs/clients.md shows both`
      : `the content type is not one that the operation takes; send ${allowed}`;
    const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed });
    return { error, status: 415, header: { "accept-post": allowed } };
  }
  return undefined;
}

/** Returns the error of a draining server for late calls. */
export function shuttingDown(): ConnectError {
  return writeConnectError(
    ErrorReason.UNAVAILABLE,
    "the server is shutting down: call again, another instance or a restart will answer",
  );
}

/** The error with which a call must end; set before the protocol layer, which writes it in its own form. */
export const authErrorKey = createContextKey<ConnectError | undefined>(undefined, { description: "refusal" });

/** Throws the authentication error inside the protocol layer, before the body is read. */
export function runAuthentication(ctx: HandlerContext): void {
  const refusal = ctx.values.get(authErrorKey);
  if (refusal) throw refusal;
  const caller = ctx.values.get(callerKey);
  if (!caller) return;
  const changes = ctx.method.idempotency !== Idempotency.NO_SIDE_EFFECTS;
  const refused = authorize(operationOf(ctx), caller, changes);
  if (refused) throw refused;
}

/**
 * Returns why a caller may not call an operation, whatever its arguments;
 * undefined while it may.
 *
 * @param changes whether the operation has side effects
 */
export function authorize(operation: string, caller: Caller, changes: boolean): ConnectError | undefined {
  const needed = permissionOf(operation);
  if (needed && needed.grants[caller.role] === "none") {
    const { permission } = needed;
    return writeConnectError(ErrorReason.PERMISSION_DENIED, `the permission ${permission} is missing`, {
      permission,
    });
  }
  if (changes && caller.readOnly) {
    return writeConnectError(
      ErrorReason.PERMISSION_DENIED,
      "the token is read-only: use one that may make changes",
      {
        permission: "write",
      },
    );
  }
  return undefined;
}
