import { contentTypeStreamJson, contentTypeUnaryJson } from "@connectrpc/connect/protocol-connect";
import { enveloped } from "../../rpc/request/envelope.ts";
import type { Route } from "../../rpc/routes.ts";
import { isResumable } from "../../rpc/stream/stream-positions.ts";
import type { HttpRequest } from "../connection/listener.ts";

/** The media types of a stream for programs without a Connect or gRPC client. */
export type PlainForm = "application/x-ndjson" | "text/event-stream";

const FORMS: readonly PlainForm[] = ["application/x-ndjson", "text/event-stream"];

const JSON_BODY = /^application\/json\s*(;|$)/i;

/**
 * Returns the form that a request asks for in its header Accept, either as a POST with the usual JSON body or as a GET
 * with a query. Returns undefined for all other requests, which the protocols handle.
 */
export function plainFormOf(req: HttpRequest, route: Route | undefined): PlainForm | undefined {
  const method = route?.handle.method;
  if (method?.methodKind !== "server_streaming" || !isResumable(method)) return undefined;
  const isAsked = req.method === "GET" || (req.method === "POST" && isJson(req));
  return isAsked ? preferred(req.headers.accept ?? "") : undefined;
}

function isJson({ headers }: HttpRequest): boolean {
  return JSON_BODY.test(headers["content-type"] ?? "");
}

/** Returns the form with the greatest weight (RFC 9110, section 12.4.2); the first one when several are equal. */
function preferred(accept: string): PlainForm | undefined {
  let best: PlainForm | undefined;
  let bestWeight = 0;
  for (const each of accept.toLowerCase().split(",")) {
    const [type = "", ...parameters] = each.split(";").map((part) => part.trim());
    const form = FORMS.find((known) => known === type);
    const weight = Number(parameters.find((part) => part.startsWith("q="))?.slice(2) ?? 1);
    if (form === undefined || !(weight > bestWeight)) continue;
    best = form;
    bestWeight = weight;
  }
  return best;
}

/** Gives a request by GET the headers of one with a JSON body. */
export function asPost({ headers }: HttpRequest): void {
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) delete headers[name];
  headers["content-type"] = contentTypeUnaryJson;
}

/** Headers in which a client names the compressions of a stream; here nothing is compressed. */
const ACCEPTED_COMPRESSIONS = ["connect-accept-encoding", "grpc-accept-encoding"];

/**
 * Gives a request with a JSON body the headers of Connect's streaming protocol, once the form of its messages is known.
 * That protocol refuses a compression that is left in the headers.
 */
export function asStream({ headers }: HttpRequest): void {
  const { "content-encoding": compression } = headers;
  delete headers["content-encoding"];
  delete headers["connect-content-encoding"];
  for (const name of ACCEPTED_COMPRESSIONS) delete headers[name];
  if (compression) headers["connect-content-encoding"] = compression;
  headers["content-type"] = contentTypeStreamJson;
}

/** Puts a whole message into the envelope of a stream. */
export async function* inEnvelope(messages: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  for await (const message of messages) yield enveloped(message);
}

/** Returns the event id after which to resume (HTML, server-sent events); undefined to start as the request says. */
export function resumedPosition({ headers }: HttpRequest): string | undefined {
  const position = headers["last-event-id"];
  return typeof position === "string" && position !== "" ? position : undefined;
}
