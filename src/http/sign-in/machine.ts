import type { CallRecord } from "../../rpc/access/call-record.ts";
import {
  ExchangeRefused,
  type MachineClaims,
  type MachineExchange,
} from "../../services/identity/machine/machine-exchange.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { readForm, writeJson } from "./page-request.ts";
import type { SignInRoute } from "./sign-in.ts";

export interface MachineOptions {
  /** Verifies the tokens of the issuers in the settings. */
  readonly machineTokens: { read(token: string): Promise<MachineClaims> };
  readonly machineExchange: MachineExchange;
  /** Reports to the operator why a machine got no token. */
  readonly onExchangeRefused: (reason: string, cause: unknown) => void;
}

/** The grant type and token types of RFC 8693. */
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const TOKEN_TYPES: ReadonlySet<string | null> = new Set([
  "urn:ietf:params:oauth:token-type:jwt",
  "urn:ietf:params:oauth:token-type:id_token",
]);
const ISSUED_TYPE = "urn:ietf:params:oauth:token-type:access_token";

/** Maximum bytes of a request: an issuer's token and the other form fields. */
const MAX_BYTES = 17 * 1_024;

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns the route `POST /sign-in/machine/token`: exchanges an issuer's token for a service account's (RFC 8693). */
export function machineRoutes(options: MachineOptions): Readonly<Record<string, SignInRoute>> {
  return {
    "/sign-in/machine/token": {
      method: "POST",
      ownPage: false,
      act: (req, res, record) => exchange(options, req, res, record),
    },
  };
}

async function exchange(
  { machineTokens, machineExchange, onExchangeRefused }: MachineOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<void> {
  const refuse = (error: string, error_description: string, status = 400) =>
    writeJson(res, record, { error, error_description }, status);
  const form = await readForm(req, res, record, MAX_BYTES);
  if (!form) return;
  if (form.get("grant_type") !== GRANT) return refuse("unsupported_grant_type", `the grant_type is ${GRANT}`);
  if (!TOKEN_TYPES.has(form.get("subject_token_type"))) {
    return refuse("invalid_request", `the subject_token_type is ${[...TOKEN_TYPES].join(" or ")}`);
  }
  const serviceAccountId = form.get("service_account_id") ?? "";
  if (!ID.test(serviceAccountId))
    return refuse("invalid_request", "the service_account_id is missing, or no id");
  try {
    const claims = await machineTokens.read(form.get("subject_token") ?? "");
    const given = await machineExchange.exchange(claims, serviceAccountId.toLowerCase());
    await writeJson(res, record, {
      access_token: given.token,
      issued_token_type: ISSUED_TYPE,
      token_type: "Bearer",
      expires_in: given.validSeconds,
    });
  } catch (error) {
    if (!(error instanceof ExchangeRefused)) throw error;
    onExchangeRefused(error.message, error.cause);
    await refuse(error.problem, error.message, error.problem === "invalid_grant" ? 400 : 503);
  }
}
