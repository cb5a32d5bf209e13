import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import { type DetailMessages, errorResponses, errorSchema } from "./errors.ts";
import type { Example } from "./examples.ts";
import { Messages } from "./messages.ts";
import type { Schema } from "./schema.ts";
import { described, firstSentence, textOf } from "./texts.ts";

const JSON_TYPE = "application/json";

/** What a document is made of. */
export interface Contract extends DetailMessages {
  readonly services: readonly DescService[];
  /** The release that the contract is of. */
  readonly version: string;
  /** Returns the call on file of an operation, named as `ProjectService.GetProject`. */
  readonly example: (operation: string) => Example | undefined;
}

/** Creates the OpenAPI document of the unary operations of a contract. */
export function openApiDocument(contract: Contract): Schema {
  const methods = contract.services.flatMap((service) => service.methods);
  const unary = methods.filter(({ methodKind }) => methodKind === "unary");
  const messages = new Messages([...unary.map(({ output }) => output), ...contract.details]);
  const responses = errorResponses(contract);
  const statuses = Object.keys(responses);
  const paths = unary.map((method) => {
    const post = operation(
      method,
      messages,
      statuses,
      contract.example(`${method.parent.name}.${method.name}`),
    );
    return [`/${method.parent.typeName}/${method.name}`, { post }] as const;
  });
  const error = errorSchema(contract, messages);
  const schemas = [...messages.schemas].toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    openapi: "3.1.0",
    info: {
      title: "Chartroom",
      version: contract.version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: introduction(methods.filter(({ methodKind }) => methodKind !== "unary")),
    },
    servers: [{ url: "/api", description: "The server that this document comes from." }],
    security: [{ token: [] }],
    tags: contract.services.map((service) => ({ name: service.name, description: textOf(service) })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "A token of a person, a service account, a runner or an environment.",
        },
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: Object.fromEntries(statuses.map((status) => [`Error${status}`, responses[status]])),
      schemas: { Error: error, ...Object.fromEntries(schemas) },
    },
  };
}

const PARAMETERS = {
  IdempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "Makes the call safe to repeat: the same request with the same key has one effect, and the first answer is given again. 1 to 255 visible characters of ASCII.",
    schema: { type: "string", minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e]+$" },
  },
} as const;

const HEADERS = {
  "X-Request-Id": {
    description: "Names the call in the server's log.",
    schema: { type: "string" },
  },
  "Idempotency-Replayed": {
    description: "`true` when the answer is that of an earlier call with the same key.",
    schema: { type: "string" },
  },
} as const;

function introduction(streams: readonly DescMethod[]): string {
  const list = streams.map(({ parent, name }) => `- \`${parent.typeName}/${name}\``).join("\n");
  return described(
    "Operations are called with POST, take and return JSON, and need a token. The document is made from the contract, the files under `proto`; it describes the Connect protocol's unary calls with JSON. The same paths take its binary form and gRPC. The header `Connect-Timeout-Ms` of any call is the number of milliseconds after which the server gives up.",
    "Values have the JSON form of Protocol Buffers: integers of 64 bits are texts, bytes are in base64, times are those of RFC 3339, durations are seconds with an `s`, and a field mask is one text of paths with commas between. Requests name no field that the contract does not have; a field that is left out has its empty value. Answers always have lists, maps, numbers, texts and booleans, also when they are empty; messages, and fields that may be unset, are left out when they are not set. A later release may add fields to answers and values to enums.",
    "Rules of a request are keywords of its schema where JSON Schema has one, and sentences of the description where it has not. A message that requests and answers share has two schemas: the one with the rules ends with `_InRequest`.",
    `Operations that stream are not described here; docs/clients.md says how they are called:\n\n${list}`,
  );
}

function operation(
  method: DescMethod,
  messages: Messages,
  statuses: readonly string[],
  example: Example | undefined,
): Schema {
  const text = textOf(method);
  const changes = method.idempotency !== Idempotency.NO_SIDE_EFFECTS;
  const parameters = changes ? ["IdempotencyKey"] : [];
  const answer = example?.status === 200 ? { example: example.answer } : {};
  return {
    operationId: `${method.parent.name}_${method.name}`,
    tags: [method.parent.name],
    summary: firstSentence(text),
    description: text,
    ...(method.deprecated && { deprecated: true }),
    parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    requestBody: {
      required: true,
      content: {
        [JSON_TYPE]: {
          schema: messages.reference(method.input, "request"),
          ...(example && { example: example.request }),
        },
      },
    },
    responses: {
      "200": {
        description: textOf(method.output) || "The answer.",
        headers: {
          "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
          ...(changes && { "Idempotency-Replayed": { $ref: "#/components/headers/Idempotency-Replayed" } }),
        },
        content: { [JSON_TYPE]: { schema: messages.reference(method.output, "answer"), ...answer } },
      },
      ...Object.fromEntries(
        statuses.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]),
      ),
    },
  };
}
