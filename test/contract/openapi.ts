import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";

/** What the tests read of the OpenAPI document. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, { readonly post: OpenApiOperation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
}

interface OpenApiOperation {
  readonly operationId: string;
  readonly description: string;
  readonly parameters: readonly { readonly $ref: string }[];
  readonly requestBody: { readonly content: OpenApiContent };
  readonly responses: Readonly<Record<string, { readonly content: OpenApiContent }>>;
}

interface OpenApiContent {
  readonly "application/json": { readonly schema: { readonly $ref: string }; readonly example?: unknown };
}

const FILE = join(import.meta.dirname, "../../gen/openapi.json");

let read: OpenApiDocument | undefined;

/** Returns the committed document, which it reads once. */
export function openApi(): OpenApiDocument {
  read ??= JSON.parse(readFileSync(FILE, "utf8")) as OpenApiDocument;
  return read;
}

let ajv: Ajv2020 | undefined;

function validator(): Ajv2020 {
  if (ajv) return ajv;
  // What only describes, such as int32, is no format to check.
  ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: true, logger: false });
  ajvFormats.default(ajv);
  ajv.addSchema({ $id: "openapi.json", components: openApi().components });
  return ajv;
}

/** Returns the check of a schema of the document by its reference, such as `#/components/schemas/Error`. */
export function schemaCheck(reference: string): ValidateFunction {
  const check = validator().getSchema(`openapi.json${reference}`);
  if (!check) throw new Error(`the document has no ${reference}`);
  return check;
}

/** Returns the reference to the form of a message in requests; undefined when no unary operation takes it. */
export function requestReference(typeName: string): string | undefined {
  const { schemas } = openApi().components;
  const name = [`${typeName}_InRequest`, typeName].find(
    (each) => schemas[each]?.additionalProperties === false,
  );
  return name && `#/components/schemas/${name}`;
}
