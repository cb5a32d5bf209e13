import { createHmac } from "node:crypto";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import {
  TriggerVerdict,
  TriggerVerdictSchema,
  type WorkflowTriggerEvent,
} from "#gen/service/v1/workflow_pb.js";
import { equalBytes } from "../../keys.ts";
import type { Admission } from "../../rpc/access/admission.ts";
import { authError } from "../../rpc/access/authentication.ts";
import { authorize } from "../../rpc/access/authorization.ts";
import type { CallLimits } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, writeConnectError } from "../../rpc/error/error.ts";
import {
  createWebhookReceiver,
  type ReceiveDelivery,
  START_WORKFLOW,
  type WebhookDelivery,
  type WebhookDependencies,
} from "../../services/workflow/trigger/webhook-delivery.ts";
import {
  type DeliveryBodies,
  deliveryBodies,
  MAX_DELIVERY_BYTES,
  MAX_HELD_BYTES,
} from "../body/delivery-body.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { writeWhole } from "../output/node-response.ts";
import { limitCaller } from "./caller-headers.ts";
import { type Dispatch, withErrorResponses, writeError } from "./dispatch.ts";

/** The path of a workflow's webhookUrl, which has no prefix /api. */
const PATH = /^\/workflows\/([^/?]+)\/webhooks(?:\?|$)/;

/** The name of a delivery in the access log: its path names the workflow. */
const OPERATION = "webhook";

export interface WebhookOptions extends Pick<WebhookDependencies, "store" | "keys" | "now"> {
  readonly admission: Admission;
  readonly limits: Pick<CallLimits, "admit">;
  readonly report: ReportFault;
  readonly onRecordFailure: (error: unknown) => void;
  /** Maximum bytes of all deliveries in memory; 64 MiB when absent. */
  readonly maxHeldBytes?: number;
}

/** Returns whether a request is for the webhook of a workflow, known or not. */
export function isWebhook(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/**
 * Creates the dispatch of deliveries. It responds with the verdicts, and 202 when
 * a trigger started something or 200 when none did. Errors are 400, 401, 403, 405,
 * 413 and 503, in the form of Connect's JSON errors.
 */
export function createWebhookDispatch(options: WebhookOptions): Dispatch {
  const receive = createWebhookReceiver({
    ...options,
    cryptography: {
      hmacSha256: (key, bytes) => createHmac("sha256", key).update(bytes).digest(),
      equalBytes,
    },
  });
  const bodies = deliveryBodies(options.maxHeldBytes ?? MAX_HELD_BYTES);
  return withErrorResponses(
    (req, res, record) => receiveDelivery({ ...options, receive, bodies }, req, res, record),
    options.report,
  );
}

interface WebhookParts extends WebhookOptions {
  readonly receive: ReceiveDelivery;
  readonly bodies: DeliveryBodies;
}

async function receiveDelivery(
  { admission, limits, receive, bodies }: WebhookParts,
  ...[req, res, record]: Parameters<Dispatch>
): Promise<void> {
  record.operation = OPERATION;
  if (req.method !== "POST") {
    const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, "deliveries are sent with POST", {
      allowed: "POST",
    });
    return writeError(res, record, error, 405, { allow: "POST" });
  }
  admission.requireOpen();
  const events = await bodies.hold(req, (body) =>
    receive({
      workflowId: PATH.exec(req.url ?? "")?.[1] ?? "",
      headers: req.headers as WebhookDelivery["headers"],
      body,
      trace: record.trace,
      identify: () => callerOf({ admission, limits }, req, res, record),
    }),
  );
  if (!events) {
    const error = writeConnectError(
      ErrorReason.BODY_TOO_LARGE,
      `the delivery is larger than the ${MAX_DELIVERY_BYTES} bytes that a webhook takes`,
      { limit_bytes: String(MAX_DELIVERY_BYTES) },
    );
    return writeError(res, record, error, 413);
  }
  const started = events.some(({ verdict }) => verdict === TriggerVerdict.STARTED);
  const text = JSON.stringify({ verdicts: events.map(verdictOf) });
  const header = new Headers({ "content-type": "application/json" });
  await writeWhole(res, started ? 202 : 200, header, Buffer.from(text), record.output);
}

/** Authenticates the sender of an unsigned delivery; a signed one needs no token. */
async function callerOf(
  { admission, limits }: Pick<WebhookOptions, "admission" | "limits">,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
) {
  const authentication = await admission.identify(req.headers.authorization, record);
  if (authentication.kind === "unknown" || authentication.kind === "expired") return undefined;
  if (authentication.kind === "blocked") throw authError(authentication);
  const { caller } = authentication;
  const error = limitCaller(limits, res, record) ?? authorize(START_WORKFLOW, caller, true);
  if (error) throw error;
  return caller;
}

/** Returns the sender's view of one entry of the ledger. */
function verdictOf({ id, verdict, reason, triggerIndex, workflowExecutionId }: WorkflowTriggerEvent) {
  return {
    triggerEventId: id,
    verdict: TriggerVerdictSchema.value[verdict]?.name,
    reason,
    ...(triggerIndex !== undefined && { triggerIndex }),
    workflowExecutionId,
  };
}
