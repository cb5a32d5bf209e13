import { join } from "node:path";
import { loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const root = join(import.meta.dirname, "../..");

/**
 * Loads ProjectService as is usual with grpc-js: from the .proto file, without
 * generated code.
 *
 * @param defaults true to include fields with default values in messages,
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
