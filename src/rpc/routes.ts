import type { DescMessage, DescMethod, DescMethodUnary, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import {
  createConnectRouter,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
} from "@connectrpc/connect";
import type { MethodSerializationLookup, UniversalHandler } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import { Health } from "#gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../domain/error.ts";
import { runAuthentication } from "./access/authorization.ts";
import { CONTRACT } from "./contract.ts";
import { healthService, type Readiness } from "./health.ts";
import { reflectionService } from "./reflection.ts";
import { JSON_OPTIONS } from "./request/json-options.ts";
import { useParsedRequest } from "./request/parsed-request.ts";
import { type RequestReading, requestReading } from "./request/request-reading.ts";

export { CONTRACT };

/** Services around the contract take small questions only. */
const SIDE_BODY_LIMIT_BYTES = 64 * 1024;

/** Operations of one service by their name in the code; the classes hold them to the contract. */
// biome-ignore lint/complexity/noBannedTypes: the table holds operations of every signature
export type Implementation = Readonly<Record<string, Function | undefined>>;

/** Implementations by full service name; an operation without one answers unimplemented. */
export type Implementations = ReadonlyMap<string, Implementation>;

export interface Route {
  readonly handle: UniversalHandler;
  /** False for what probes ask without a token. */
  readonly gated: boolean;
  /** Full name of the operation, such as `service.v1.ProjectService/GetProject`. */
  readonly operation: string;
  /** undefined outside the contract. */
  readonly requests?: RequestReading;
  /** Whether it is unary and changes nothing. */
  readonly isRead: boolean;
  /** What `handle` is made of, for a shorter way to unary operations of the contract; undefined for all others. */
  readonly unary?: UnaryOperation;
}

/** A unary operation without a protocol around it. */
export interface UnaryOperation {
  readonly method: DescMethodUnary;
  readonly implementation: (message: Message, ctx: HandlerContext) => object | Promise<object>;
  /** Outermost first. */
  readonly interceptors: readonly Interceptor[];
  /** Reads requests and writes answers in both forms. */
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  readonly requests: RequestReading;
}

export interface RouteOptions {
  readonly implementations: Implementations;
  /** Outermost first. */
  readonly interceptors: readonly Interceptor[];
  readonly readiness: Readiness;
  /** Unknown JSON fields are skipped instead of refused. */
  readonly allowUnknownFields: boolean;
}

/** Every route by its literal path, such as `/service.v1.ProjectService/GetProject`. */
export function createRoutes(options: RouteOptions): ReadonlyMap<string, Route> {
  const router = createConnectRouter({
    // The unary path puts such a request in its place itself.
    interceptors: [useParsedRequest, ...options.interceptors],
    requestGate: runAuthentication,
    acceptCompression: [compressionGzip],
    jsonOptions: JSON_OPTIONS,
  });
  const unary = new Map<DescMethod, UnaryOperation>();
  const readings = new Map<DescMethod, RequestReading>();
  for (const service of CONTRACT) {
    const implementations = options.implementations.get(service.typeName) ?? {};
    for (const method of service.methods) {
      const implementation = operation(implementations, method);
      const requests = requestReading(method, options.allowUnknownFields);
      readings.set(method, requests);
      const { limitBytes: readMaxBytes, jsonOptions, serialization } = requests;
      router.rpc(method, implementation, { readMaxBytes, jsonOptions });
      if (!isUnary(method)) continue;
      unary.set(method, {
        method,
        implementation: implementation as unknown as UnaryOperation["implementation"],
        interceptors: options.interceptors,
        serialization,
        requests,
      });
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
        gated: handle.service !== Health,
        operation: `${handle.service.typeName}/${handle.method.name}`,
        ...(requests && { requests }),
        isRead: isUnary(handle.method) && handle.method.idempotency === Idempotency.NO_SIDE_EFFECTS,
        ...(operation && { unary: operation }),
      };
      return [handle.requestPath, route];
    }),
  );
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

function operation(implementation: Implementation, method: DescMethod): MethodImpl<DescMethod> {
  const built = implementation[method.localName];
  if (built) return built.bind(implementation) as MethodImpl<DescMethod>;
  return (() => {
    const name = `${method.parent.typeName}/${method.name}`;
    const message = `${name} is in the contract and not built yet; a later release answers it`;
    throw new DomainError(ErrorReason.NOT_BUILT, message, { operation: name });
  }) as unknown as MethodImpl<DescMethod>;
}
