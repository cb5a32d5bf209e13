import type { ConnectError, ContextValues } from "@connectrpc/connect";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { deadlineMs } from "../../rpc/deadline.ts";
import { completeError } from "../../rpc/error/complete-error.ts";
import type { ReportFault } from "../../rpc/error/error.ts";
import type { ParseElsewhere } from "../../rpc/request/parsed-request.ts";
import { LargeMessages, largeMessagesKey } from "../../rpc/response/large-message.ts";
import type { Route } from "../../rpc/routes.ts";
import { messageInQuery } from "../../rpc/stream/query-message.ts";
import { StreamPositions, streamPositionsKey } from "../../rpc/stream/stream-positions.ts";
import { streamBegunKey } from "../../services/call/call.ts";
import { announcesStartKey } from "../../services/call/plain-stream.ts";
import type { BodyHold } from "../body/body-budget.ts";
import { incomingBody } from "../body/incoming-body.ts";
import { messageForm } from "../body/request-messages.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { contentLengthOf, runRoute } from "../dispatch/run-route.ts";
import { PlainOutput } from "./plain-output.ts";
import { asPost, asStream, inEnvelope, type PlainForm, resumedPosition } from "./plain-request.ts";

export interface PlainOptions {
  readonly parseElsewhere: ParseElsewhere;
  readonly report: ReportFault;
}

/** A stream that an admitted caller requests as JSON lines or server-sent events. */
export interface PlainCall {
  readonly route: Route;
  readonly form: PlainForm;
  readonly values: ContextValues;
  readonly hold: BodyHold;
}

/**
 * Runs a streaming operation with the limits and permissions that its own protocol applies, and writes its messages as
 * JSON lines or server-sent events.
 *
 * @returns the error of a stream that did not begin
 * @throws DomainError VALUE_UNUSABLE for a query that does not hold a valid request
 */
export async function dispatchPlain(
  options: PlainOptions,
  { route, form, values, hold }: PlainCall,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<ConnectError | undefined> {
  const inQuery = req.method === "GET" ? messageInQuery(req.url ?? "") : undefined;
  if (inQuery) asPost(req);
  const length = inQuery?.length ?? contentLengthOf(req);
  const body = inQuery ? only(inQuery) : incomingBody(req, deadlineMs(req.headers));
  const requestForm = messageForm(req);
  asStream(req);
  const output = new PlainOutput(res, form, record.output);
  const positions = new StreamPositions(resumedPosition(req));
  const large = new LargeMessages();
  values
    .set(largeMessagesKey, large)
    .set(streamPositionsKey, positions)
    .set(announcesStartKey, true)
    .set(streamBegunKey, () => output.begin());
  const response = await runRoute(
    options,
    { route, values, hold, form: requestForm, length, body, convert: inEnvelope },
    req,
    res,
    record,
  );
  return output.write(completeError(response, record, options.report), positions, large);
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}
