/**
 * The plugin of buf that writes gen/openapi.json, and gen/tools.json for the tools of MCP; `npm run generate` starts it.
 * Examples are the calls on file in test/e2e/golden, the release is that of package.json.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createEcmaScriptPlugin, runNodeJs, type Schema } from "@bufbuild/protoplugin";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { openApiDocument } from "./document.ts";
import { exampleOf } from "./examples.ts";
import { toolDocument } from "./tools.ts";

const ROOT = join(import.meta.dirname, "../..");
const GOLDEN = join(ROOT, "test/e2e/golden");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

/** Writes the documents where the files of the contract are among what is generated. */
function generate(schema: Schema): void {
  const types = schema.files.flatMap((file) => [...file.enums, ...file.messages]);
  const named = (name: string) => types.find(({ typeName }) => typeName === `service.v1.${name}`);
  const [reasons, detail, decision] = ["ErrorReason", "ErrorDetail", "PolicyDecision"].map(named);
  if (reasons?.kind !== "enum" || detail?.kind !== "message" || decision?.kind !== "message") return;
  const services = schema.files
    .flatMap((file) => file.services)
    .toSorted((one, other) => (one.typeName < other.typeName ? -1 : 1));
  const forClients = services.filter(({ typeName }) => typeName.startsWith("service."));
  const document = openApiDocument({
    services: [...forClients, ...services.filter(({ typeName }) => !typeName.startsWith("service."))],
    version,
    example: (operation) => exampleOf(GOLDEN, operation),
    reasons,
    details: [detail, ViolationsSchema, decision],
  });
  schema.generateFile("openapi.json").print(JSON.stringify(document, undefined, 1));
  schema.generateFile("tools.json").print(JSON.stringify(toolDocument(forClients), undefined, 1));
}

runNodeJs(
  createEcmaScriptPlugin({ name: "protoc-gen-openapi", version: `v${version}`, generateTs: generate }),
);
