import type { DescEnum, DescMessage } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { codeFromString, codeToHttpStatus, codeToString } from "@connectrpc/connect/protocol-connect";
import type { Messages } from "./messages.ts";
import type { Schema } from "./schema.ts";
import { textOf } from "./texts.ts";

/** The reason of requests that reach no operation, which have statuses of HTTP's own. */
const TRANSPORT = "ERROR_REASON_TRANSPORT_UNSUPPORTED";
const TRANSPORT_STATUSES = [405, 415];

/** A failure of the catalogue. */
interface Reason {
  readonly name: string;
  readonly text: string;
  readonly status: number;
}

/** The messages that details of errors hold. */
export interface DetailMessages {
  /** The catalogue, whose comments name the code of each reason. */
  readonly reasons: DescEnum;
  readonly details: readonly DescMessage[];
}

/** Returns the answers to failed calls by their HTTP status; each names the reasons that it may have. */
export function errorResponses({ reasons }: DetailMessages): Record<string, Schema> {
  const byStatus = new Map<number, Reason[]>();
  for (const reason of reasons.values.filter(({ number }) => number !== 0)) {
    const text = textOf(reason).replaceAll("\n", " ");
    const code = codeFromString(/\bCode ([a-z_]+)\./.exec(text)?.[1] ?? "");
    if (code === undefined) throw new Error(`${reason.name}: its comment names no code`);
    const statuses = reason.name === TRANSPORT ? TRANSPORT_STATUSES : [codeToHttpStatus(code)];
    for (const status of statuses) {
      byStatus.set(status, [...(byStatus.get(status) ?? []), { name: reason.name, text, status }]);
    }
  }
  const ordered = [...byStatus].toSorted(([one], [other]) => one - other);
  return Object.fromEntries(ordered.map(([status, found]) => [String(status), response(status, found)]));
}

function response(status: number, reasons: readonly Reason[]): Schema {
  const list = reasons.map(({ name, text }) => `- \`${name}\`: ${text}`).join("\n");
  return {
    description: `The call failed; its reason is one of these.\n\n${list}`,
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
      ...(status === 401 && { "WWW-Authenticate": { schema: { type: "string" } } }),
    },
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
}

/** Returns the schema of the body of a failed call; adds those of its details to the messages. */
export function errorSchema({ details }: DetailMessages, messages: Messages): Schema {
  const codes = Object.values(Code).filter((code): code is Code => typeof code === "number");
  return {
    type: "object",
    description: "The answer to a call that failed.",
    required: ["code"],
    properties: {
      code: { type: "string", enum: codes.map(codeToString), description: "What kind of failure it is." },
      message: { type: "string", description: "What failed and what would help, to be read by people." },
      details: {
        type: "array",
        description:
          "What programs read. Each error has one detail of the type `service.v1.ErrorDetail` with its reason.",
        items: { anyOf: details.map((message) => detail(message, messages)) },
      },
    },
  };
}

function detail(message: DescMessage, messages: Messages): Schema {
  return {
    type: "object",
    required: ["type", "value"],
    properties: {
      type: { type: "string", const: message.typeName },
      value: { type: "string", contentEncoding: "base64", description: "The detail in its binary form." },
      debug: messages.reference(message, "answer"),
    },
  };
}
