import { join } from "node:path";
import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import {
  type ChannelCredentials,
  type ChannelOptions,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import type { ReachableServer } from "../../harness/server.ts";
import { failure, type Speak } from "./outcome.ts";

type Values = Record<string, unknown>;
type Unary = (
  req: unknown,
  metadata: Metadata,
  done: (error: ServiceError | null, answer: Values) => void,
) => void;
/** What proto-loader makes of a service: a class of clients. */
export type GrpcService<C> = new (
  address: string,
  channel: ChannelCredentials,
  options?: ChannelOptions,
) => C & { close(): void };

const root = join(import.meta.dirname, "../../..");

/**
 * Loads a service of a .proto file the way clients without generated code do.
 *
 * @param name such as `service.v1.ProjectService`
 */
export function loadService<C = Record<string, Unary>>(file: string, name: string): GrpcService<C> {
  const definition = loadSync(file, {
    includeDirs: [join(root, "proto"), join(root, "third_party")],
    longs: String,
    enums: String,
    defaults: true,
    oneofs: true,
  });
  const found = name
    .split(".")
    .reduce<unknown>((level, part) => (level as Values)[part], loadPackageDefinition(definition));
  if (typeof found !== "function") throw new Error(`${file} has no service ${name}`);
  return found as GrpcService<C>;
}

/**
 * @grpc/grpc-js with @grpc/proto-loader, at the root path, as it cannot carry a prefix.
 *
 * @param channel by default plain text
 */
export function speakGrpcJs(
  server: Pick<ReachableServer, "port" | "token">,
  channel: ChannelCredentials = credentials.createInsecure(),
  options: ChannelOptions = {},
): Speak & { close(): void } {
  const Client = loadService("service/v1/project_service.proto", ProjectService.typeName);
  const client = new Client(`127.0.0.1:${server.port}`, channel, options);
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${server.token}`);
  const speak: Speak = (operation, request) =>
    new Promise((resolve) => {
      const method = ProjectService.methods.find(({ name }) => name === operation);
      if (!method) throw new Error(`ProjectService has no operation ${operation}`);
      client[operation]?.(request, metadata, (error, answer) => {
        if (error) resolve(failureOf(error));
        else resolve({ answer: toCanonical(method.output, answer) });
      });
    });
  return Object.assign(speak, { close: () => client.close() });
}

function failureOf(error: ServiceError) {
  const trailer = new Headers({ "grpc-status": String(error.code), "grpc-message": error.details });
  for (const bytes of error.metadata.get("grpc-status-details-bin")) {
    trailer.set("grpc-status-details-bin", Buffer.from(bytes).toString("base64"));
  }
  const connectError = findTrailerError(trailer);
  if (!connectError) throw error;
  return failure(connectError);
}

/** The objects of proto-loader in Protobuf's JSON, every field in the form that the descriptors ask for. */
export function toCanonical(message: DescMessage, values: Values): JsonValue {
  const json = Object.fromEntries(
    message.fields.flatMap((field) => {
      const value = values[field.jsonName];
      const isUnset = value === null || value === undefined || (field.oneof && !(field.jsonName in values));
      return isUnset ? [] : [[field.jsonName, fieldJson(field, value)]];
    }),
  );
  return toJson(message, fromJson(message, json as JsonValue), { alwaysEmitImplicit: true });
}

function fieldJson(field: DescField, value: unknown): unknown {
  const nested = field.fieldKind === "enum" ? undefined : field.message;
  if (!nested) return value;
  const inner = (each: unknown) => messageJson(nested, each as Values);
  if (field.fieldKind === "list") return (value as unknown[]).map(inner);
  if (field.fieldKind !== "map") return inner(value);
  return Object.fromEntries(Object.entries(value as Values).map(([key, each]) => [key, inner(each)]));
}

function messageJson(message: DescMessage, values: Values): unknown {
  const seconds = BigInt((values.seconds as string | undefined) ?? 0);
  const nanos = (values.nanos as number | undefined) ?? 0;
  if (message.typeName === TimestampSchema.typeName) {
    return toJson(TimestampSchema, create(TimestampSchema, { seconds, nanos }));
  }
  if (message.typeName === DurationSchema.typeName) {
    return toJson(DurationSchema, create(DurationSchema, { seconds, nanos }));
  }
  return toCanonical(message, values);
}
