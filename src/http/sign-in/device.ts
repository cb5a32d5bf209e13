import type { Admission } from "../../rpc/access/admission.ts";
import { networkOf } from "../../rpc/access/call-limits.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import type { DeviceLogin, Sender } from "../../services/identity/device-login.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { presentCaller, readForm, readPageRequest, type SignInAct, writeJson } from "./page-request.ts";
import type { SessionOrigin } from "./session-origin.ts";
import type { SignInRoute } from "./sign-in.ts";

export interface DeviceOptions {
  readonly deviceLogin: DeviceLogin;
  readonly admission: Admission;
  readonly sessionOrigin: () => SessionOrigin;
}

/** The grant of RFC 8628, 3.4. */
const GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** Maximum bytes of a request of a device. */
const MAX_BYTES = 2_048;

const DESCRIPTIONS = {
  no_tls: "sessions need TLS, and so do people who allow a device something: log in with a token",
  too_many: "too many devices wait already: try again in some minutes, or log in with a token",
} as const;

/**
 * Returns the routes of the device flow (RFC 8628). Devices request a token with `POST /sign-in/device/authorize` and
 * `POST /sign-in/device/token`. The page on which a person approves it calls `POST /sign-in/device/request`, which
 * names the machine, and `POST /sign-in/device/decide`.
 */
export function deviceRoutes(options: DeviceOptions): Readonly<Record<string, SignInRoute>> {
  const route = (ownPage: boolean, answer: typeof authorize): SignInRoute => {
    const act: SignInAct = (req, res, record) => answer(options, req, res, record);
    return { method: "POST", ownPage, act };
  };
  return {
    "/sign-in/device/authorize": route(false, authorize),
    "/sign-in/device/token": route(false, poll),
    "/sign-in/device/request": route(true, nameMachine),
    "/sign-in/device/decide": route(true, decide),
  };
}

async function authorize(
  { deviceLogin, sessionOrigin }: DeviceOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const form = await readForm(req, res, record, MAX_BYTES);
  if (!form) return;
  const { base, isSafe } = sessionOrigin();
  if (!isSafe) {
    const error_description = DESCRIPTIONS.no_tls;
    return writeJson(res, record, { error: "invalid_request", error_description }, 400);
  }
  const begun = await deviceLogin.begin(form.get("machine") ?? "", senderOf(record));
  if (!begun) {
    const error_description = DESCRIPTIONS.too_many;
    return writeJson(res, record, { error: "temporarily_unavailable", error_description }, 429);
  }
  const code = begun.userCode;
  const page = `${base}/sign-in/device`;
  await writeJson(res, record, {
    device_code: begun.deviceCode,
    user_code: code,
    verification_uri: page,
    // In the fragment, like the secrets in links, so that no server or log sees it.
    verification_uri_complete: `${page}#${code}`,
    expires_in: begun.validSeconds,
    interval: begun.intervalSeconds,
  });
}

async function poll(
  { deviceLogin }: DeviceOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const form = await readForm(req, res, record, MAX_BYTES);
  if (!form) return;
  if (form.get("grant_type") !== GRANT) {
    return writeJson(res, record, { error: "unsupported_grant_type" }, 400);
  }
  const answer = await deviceLogin.poll(form.get("device_code") ?? "");
  if ("problem" in answer) {
    record.isNoRefusal = answer.problem === "authorization_pending";
    return writeJson(res, record, { error: answer.problem }, 400);
  }
  await writeJson(res, record, {
    access_token: answer.token,
    token_type: "Bearer",
    expires_in: answer.validSeconds,
  });
}

async function nameMachine(
  { deviceLogin, admission }: DeviceOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { code } = await readPageRequest(req, { code: "" });
  const caller = await presentCaller(admission, req);
  const { askedAt, ...asking } = await deviceLogin.find(caller, code, senderOf(record));
  await writeJson(res, record, { ...asking, askedAt: new Date(askedAt).toISOString() });
}

async function decide(
  { deviceLogin, admission }: DeviceOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const { code, allow, userId } = await readPageRequest(req, { code: "", allow: false, userId: "" });
  const caller = await presentCaller(admission, req);
  await deviceLogin.decide(caller, code, { userId, isAllowed: allow }, senderOf(record));
  await writeJson(res, record, {});
}

function senderOf({ client = "" }: CallRecord): Sender {
  return { address: client, network: networkOf(client) };
}
