import { join } from "node:path";
import { loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const root = join(import.meta.dirname, "../..");

/**
 * ProjectService as grpc-js's users load it: from the .proto file, without
 * generated code.
 *
 * @param defaults true for messages in which fields of a default value appear,
 *   whether or not they were sent
 */
export function projectService(defaults = false): ServiceClientConstructor {
  const definition = loadSync("service/v1/project_service.proto", {
    includeDirs: [join(root, "proto"), join(root, "third_party")],
    enums: String,
    longs: Number,
    oneofs: true,
    defaults,
  });
  const loaded = loadPackageDefinition(definition) as unknown as {
    service: { v1: { ProjectService: ServiceClientConstructor } };
  };
  return loaded.service.v1.ProjectService;
}
