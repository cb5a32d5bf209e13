import type { DescMessage, DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import {
  type ConnectRouter,
  createConnectRouter,
  createServiceImplSpec,
  type HandlerContext,
  type Interceptor,
  type MethodImplSpec,
  type ServiceImpl,
  type ServiceImplSpec,
} from "@connectrpc/connect";
import type {
  MethodSerializationLookup,
  UniversalHandler,
  UniversalHandlerOptions,
} from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { Health } from "#gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { runAuthentication } from "./access/authorization.ts";
import { CONTRACT } from "./contract.ts";
import { withDeadline } from "./deadline.ts";
import { healthService, type Readiness } from "./health.ts";
import { reflectionService } from "./reflection.ts";
import { JSON_OPTIONS } from "./request/json-options.ts";
import { useParsedRequest } from "./request/parsed-request.ts";
import { deadlinePassed } from "./request/request-failure.ts";
import { type RequestReading, requestReading } from "./request/request-reading.ts";
import { COMPRESS_MIN_BYTES } from "./response/compression.ts";
import { passLargeMessages } from "./response/large-message.ts";

export { CONTRACT };

/** Services outside the contract accept small requests only. */
const SIDE_BODY_LIMIT_BYTES = 64 * 1024;

/** Binds a service of the contract to its implementation; the type checker compares the two. */
export function implement<D extends DescService>(
  contract: D,
  implementation: ServiceImpl<D>,
): ServiceImplSpec {
  return createServiceImplSpec<D>(contract, implementation);
}

export interface Route {
  readonly handle: UniversalHandler;
  /** False for probes, which need no token. */
  readonly requiresToken: boolean;
  /** The full name of the operation, such as `service.v1.ProjectService/GetProject`. */
  readonly operation: string;
  /** Undefined for services outside the contract. */
  readonly requests?: RequestReading;
  /** True if it is unary and changes nothing. */
  readonly isRead: boolean;
  /** The parts of `handle` that the unary path needs; undefined for operations that it does not support. */
  readonly unary?: UnaryOperation;
}

/** A unary operation without a protocol around it. */
export interface UnaryOperation {
  readonly method: DescMethodUnary;
  readonly implementation: (message: Message, ctx: HandlerContext) => object | Promise<object>;
  /** Outermost first. */
  readonly interceptors: readonly Interceptor[];
  /** Reads requests and writes responses, in JSON and binary. */
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  readonly requests: RequestReading;
}

export interface RouteOptions {
  /** Operations of services without an implementation respond with unimplemented. */
  readonly implementations: readonly ServiceImplSpec[];
  /** Outermost first. */
  readonly interceptors: readonly Interceptor[];
  readonly readiness: Readiness;
  /** True to ignore unknown JSON fields instead of refusing them. */
  readonly allowUnknownFields: boolean;
}

/** Creates every route, by its literal path, such as `/service.v1.ProjectService/GetProject`. */
export function createRoutes(options: RouteOptions): ReadonlyMap<string, Route> {
  const router = createConnectRouter({
    // The unary path substitutes a parsed request itself.
    interceptors: [passLargeMessages, useParsedRequest, ...options.interceptors],
    requestGate: runAuthentication,
    acceptCompression: [compressionGzip],
    compressMinBytes: COMPRESS_MIN_BYTES,
    jsonOptions: JSON_OPTIONS,
  });
  const unary = new Map<DescMethod, UnaryOperation>();
  const readings = new Map<DescMethod, RequestReading>();
  const built = new Map(options.implementations.map((spec) => [spec.service.typeName, spec]));
  for (const service of CONTRACT) {
    const { methods } = built.get(service.typeName) ?? createServiceImplSpec(service, {});
    for (const method of service.methods) {
      const spec = methods[method.localName];
      if (!spec) continue;
      const requests = requestReading(method, options.allowUnknownFields);
      readings.set(method, requests);
      const { limitBytes: readMaxBytes, jsonOptions, serialization } = requests;
      if (spec.kind !== "unary") {
        addRoute(router, spec, { readMaxBytes, jsonOptions });
        continue;
      }
      const implementation = untilDeadline(spec.impl);
      addRoute(router, { ...spec, impl: implementation }, { readMaxBytes, jsonOptions });
      const { interceptors } = options;
      unary.set(method, { method: spec.method, implementation, interceptors, serialization, requests });
    }
  }
  const all = [...CONTRACT, Health, ServerReflection];
  const isService = (name: string) => all.some(({ typeName }) => typeName === name);
  const side = { readMaxBytes: SIDE_BODY_LIMIT_BYTES };
  router.service(Health, healthService(options.readiness, isService), side);
  router.service(ServerReflection, reflectionService(all), side);
  return new Map(
    router.handlers.map((handle) => {
      const operation = unary.get(handle.method);
      const requests = readings.get(handle.method);
      const route: Route = {
        handle,
        requiresToken: handle.service !== Health,
        operation: `${handle.service.typeName}/${handle.method.name}`,
        ...(requests && { requests }),
        isRead: isUnary(handle.method) && handle.method.idempotency === Idempotency.NO_SIDE_EFFECTS,
        ...(operation && { unary: operation }),
      };
      return [handle.requestPath, route];
    }),
  );
}

/** Wraps an operation so that its caller's deadline is known while it runs; it does not start after the deadline. */
function untilDeadline<I, O>(
  operation: (message: I, ctx: HandlerContext) => O,
): (message: I, ctx: HandlerContext) => O {
  return (message, ctx) => {
    const leftMs = ctx.timeoutMs();
    if (leftMs === undefined) return operation(message, ctx);
    if (leftMs <= 0) throw deadlinePassed();
    return withDeadline(leftMs, () => operation(message, ctx));
  };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

/** Adds a single operation with its own limits, which the protocol layer can otherwise set only for a whole service. */
function addRoute(
  router: ConnectRouter,
  spec: MethodImplSpec,
  limits: Partial<UniversalHandlerOptions>,
): void {
  switch (spec.kind) {
    case "unary":
      router.rpc(spec.method, spec.impl, limits);
      break;
    case "server_streaming":
      router.rpc(spec.method, spec.impl, limits);
      break;
    case "client_streaming":
      router.rpc(spec.method, spec.impl, limits);
      break;
    case "bidi_streaming":
      router.rpc(spec.method, spec.impl, limits);
      break;
  }
}
