import type { ContextValues } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { deadlineMs } from "../../rpc/deadline.ts";
import { type ParseElsewhere, parsedRequestKey, turnOf } from "../../rpc/request/parsed-request.ts";
import type { Route } from "../../rpc/routes.ts";
import type { BodyHold } from "../body/body-budget.ts";
import { type MessageForm, requestMessages } from "../body/request-messages.ts";
import { withinDeadline } from "../body/within-deadline.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";

/** A call whose caller is admitted, and whose body has not been read yet. */
export interface AdmittedRequest {
  readonly route: Route;
  readonly values: ContextValues;
  readonly hold: BodyHold;
  readonly form: MessageForm;
  /** Bytes of the body; undefined when the headers do not state it. */
  readonly length: number | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** Converts the messages after they are counted, for a body in a form other than that of the operation's protocol. */
  readonly convert?: (messages: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;
}

/** Runs the operation of a call in the protocol layer, which gets the body as whole messages that were counted. */
export async function runRoute(
  { parseElsewhere }: { readonly parseElsewhere: ParseElsewhere },
  { route, values, hold, form, length, body, convert }: AdmittedRequest,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<UniversalServerResponse> {
  const { requests } = route;
  const universal = universalRequestFromNodeRequest(req, res, undefined, values);
  const timeoutMs = deadlineMs(req.headers);
  const endsAt = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  const parseLarge = async (bytes: Uint8Array): Promise<void> => {
    if (!requests) return;
    const leftMs = endsAt === undefined ? undefined : Math.max(0, endsAt - performance.now());
    // The protocol layer checks the deadline only once it has the request.
    const parsed = await withinDeadline(universal.signal, leftMs, (signal) =>
      parseElsewhere(requests, form.isBinary, bytes, turnOf(record, signal)),
    );
    values.set(parsedRequestKey, parsed);
  };
  const messages = requests ? requestMessages(body, length, form, requests, parseLarge, hold) : body;
  // Operations are called with POST, whatever carried the message.
  return route.handle({ ...universal, method: "POST", body: convert?.(messages) ?? messages });
}

/** Returns the length of a request's body in bytes; undefined when its headers do not state it. */
export function contentLengthOf({ headers }: HttpRequest): number | undefined {
  const length = headers["content-length"];
  return length === undefined ? undefined : Number(length);
}
