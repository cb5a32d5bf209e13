import { Code, type ConnectError } from "@connectrpc/connect";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, toConnectError, writeConnectError } from "../../rpc/error/error.ts";
import type { ScimDependencies } from "../../services/access/scim/provisioner.ts";
import { handleScim, type ScimAnswer } from "../../services/access/scim/scim-request.ts";
import { readBytes } from "../body/read-bytes.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import { admitBearer, type BearerOptions } from "../dispatch/admit-bearer.ts";
import type { Dispatch } from "../dispatch/dispatch.ts";
import { edgeStatus } from "../dispatch/edge-status.ts";
import { writeWhole } from "../output/node-response.ts";

/** Path of the SCIM endpoints below the base URL. */
const ROOT = "/scim/v2";
const PATH = /^\/scim(?:\/|\?|$)/;

/** Maximum bytes of a request: enough for a group of 10,000 members. */
const MAX_BODY_BYTES = 1_048_576;

const JSON_BODY = /^application\/(?:scim\+)?json\s*(?:;|$)/i;

const ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error";

export interface ScimOptions extends ScimDependencies, BearerOptions {
  /** URL under which clients reach the server, without a trailing slash. */
  readonly baseUrl: () => string;
  readonly report: ReportFault;
}

/** Returns whether a request is for SCIM. */
export function isScim(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/** Creates the dispatch of SCIM 2.0 (RFC 7644): the users and groups of the token's organization. */
export function createScimDispatch(options: ScimOptions): Dispatch {
  return async (req, res, record) => {
    record.operation = "scim";
    try {
      const { status, body, location, allowed } = await answer(options, req, res, record);
      if (location) res.setHeader("location", location);
      if (allowed) await writeWrongMethod(res, record, allowed);
      else await write(res, record, status, body);
    } catch (thrown) {
      const error = toConnectError(thrown, record, options.report);
      record.code = error.code;
      if (res.headersSent) res.destroy();
      else await writeScimError(res, record, error);
    }
  };
}

async function answer(
  options: ScimOptions,
  req: HttpRequest,
  res: HttpResponse,
  record: CallRecord,
): Promise<ScimAnswer> {
  const caller = await admitBearer(options, req, res, record);
  const [path = "", search = ""] = (req.url ?? "").split("?", 2);
  const [resource = "", id = "", ...rest] = decode(path.slice(ROOT.length + 1)).split("/");
  if (!path.startsWith(`${ROOT}/`) || rest.length > 0) throw unknownPath();
  return handleScim({
    options,
    caller,
    method: req.method ?? "",
    resource,
    id,
    query: new URLSearchParams(search),
    location: `${options.baseUrl()}${ROOT}`,
    readJson: () => readJson(req),
  });
}

async function readJson(req: HttpRequest): Promise<unknown> {
  const { headers } = req;
  if (!JSON_BODY.test(headers["content-type"] ?? "") || headers["content-encoding"] !== undefined) {
    const allowed = "application/scim+json";
    throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `send ${allowed}, not compressed`, {
      allowed,
    });
  }
  const body = await readBytes(req, MAX_BODY_BYTES);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw writeConnectError(ErrorReason.BODY_MALFORMED, "the request is no JSON in UTF-8");
  }
}

/** The `scimType` values of RFC 7644, 3.12, by error reason; by field where that is a part of the query. */
const SCIM_TYPES: Readonly<Partial<Record<ErrorReason, string>>> = {
  [ErrorReason.BODY_MALFORMED]: "invalidSyntax",
  [ErrorReason.VALUE_UNUSABLE]: "invalidValue",
  [ErrorReason.VALUE_TAKEN]: "uniqueness",
};
const FIELD_TYPES: Readonly<Record<string, string>> = {
  filter: "invalidFilter",
  path: "invalidPath",
};

/** Returns the `scimType` of an error: the one that it names itself, or that of its field or reason. */
function scimTypeOf({ reason, metadata }: ErrorDetail): string | undefined {
  return metadata.scimType ?? FIELD_TYPES[metadata.field ?? ""] ?? SCIM_TYPES[reason];
}

function writeScimError(res: HttpResponse, record: CallRecord, error: ConnectError): Promise<void> {
  const [detail] = error.findDetails(ErrorDetailSchema);
  const scimType = detail && scimTypeOf(detail);
  const status = edgeStatus(error);
  if (status === 401) res.setHeader("www-authenticate", "Bearer");
  return write(res, record, status, errorBody(status, error.rawMessage, scimType));
}

function writeWrongMethod(res: HttpResponse, record: CallRecord, allowed: string): Promise<void> {
  record.code = Code.InvalidArgument;
  res.setHeader("allow", allowed);
  return write(res, record, 405, errorBody(405, `use ${allowed}`));
}

function errorBody(status: number, detail: string, scimType?: string): object {
  return { schemas: [ERROR_SCHEMA], status: String(status), ...(scimType && { scimType }), detail };
}

function unknownPath(): ConnectError {
  return writeConnectError(ErrorReason.NOT_FOUND, "nothing is served under this path", { resource: "path" });
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw unknownPath();
  }
}

function write(
  res: HttpResponse,
  record: CallRecord,
  status: number,
  body: object | undefined,
): Promise<void> {
  const header = new Headers({ "cache-control": "no-store", "x-content-type-options": "nosniff" });
  if (body) header.set("content-type", "application/scim+json");
  return writeWhole(
    res,
    status,
    header,
    body ? Buffer.from(JSON.stringify(body)) : new Uint8Array(),
    record.output,
  );
}
