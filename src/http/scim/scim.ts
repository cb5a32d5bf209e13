import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { DomainError } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { scimGroupJson } from "../../domain/identity/scim/scim-group.ts";
import { scimFilter, scimPage } from "../../domain/identity/scim/scim-json.ts";
import { scimUserJson } from "../../domain/identity/scim/scim-user.ts";
import type { Admission } from "../../rpc/access/admission.ts";
import { authError } from "../../rpc/access/authentication.ts";
import type { CallRecord } from "../../rpc/access/call-record.ts";
import { type ReportFault, toConnectError, writeConnectError } from "../../rpc/error/error.ts";
import { requireProvisioner, type ScimDependencies } from "../../services/access/scim/provisioner.ts";
import {
  createScimGroup,
  deleteScimGroup,
  getScimGroup,
  listScimGroups,
  patchScimGroup,
  replaceScimGroup,
} from "../../services/access/scim/scim-groups.ts";
import {
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
  patchScimUser,
  replaceScimUser,
} from "../../services/access/scim/scim-users.ts";
import type { HttpRequest, HttpResponse } from "../connection/listener.ts";
import type { Dispatch } from "../dispatch/dispatch.ts";
import { writeWhole } from "../output/node-response.ts";
import { resourceTypes, schemas, serviceProviderConfig } from "./discovery.ts";

/** Path of the server's SCIM, behind its base URL. */
const ROOT = "/scim/v2";
const PATH = /^\/scim(?:\/|\?|$)/;

/** Most bytes of a request: a group of 10,000 members. */
const MAX_BODY_BYTES = 1_048_576;

const LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
const ERROR_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error";

const USER_FILTERS = ["username", "externalid", "id", "emails.value", 'emails[type eq "work"].value'];
const GROUP_FILTERS = ["displayname", "externalid", "id"];

export interface ScimOptions extends ScimDependencies {
  readonly admission: Admission;
  /** URL under which clients reach the server, without a trailing slash. */
  readonly baseUrl: () => string;
  readonly report: ReportFault;
}

/** A request, read as far as its body. */
interface ScimRequest {
  readonly options: ScimOptions;
  readonly caller: Caller;
  readonly req: HttpRequest;
  readonly query: URLSearchParams;
  /** Empty for the collection. */
  readonly id: string;
  readonly location: string;
}

interface ScimAnswer {
  readonly status: number;
  /** Undefined for none. */
  readonly body?: object;
}

/** Returns whether a request is for SCIM. */
export function isScim(req: HttpRequest): boolean {
  return PATH.test(req.url ?? "");
}

/** Creates the dispatch of SCIM 2.0 (RFC 7644): users and groups of the organization that the token is of. */
export function createScimDispatch(options: ScimOptions): Dispatch {
  return async (req, res, record) => {
    record.operation = "scim";
    try {
      const { status, body } = await answer(options, req, record);
      await write(res, record, status, body);
    } catch (thrown) {
      const error = toConnectError(thrown, record, options.report);
      record.code = error.code;
      if (res.headersSent) res.destroy();
      else await writeScimError(res, record, thrown, error);
    }
  };
}

async function answer(options: ScimOptions, req: HttpRequest, record: CallRecord): Promise<ScimAnswer> {
  const authentication = await options.admission.identify(req.headers.authorization, record);
  const refused = authError(authentication);
  if (refused) throw refused;
  options.admission.requireOpen();
  if (!record.caller) throw new Error("a known caller is missing from the record");
  const [path = "", search = ""] = (req.url ?? "").split("?", 2);
  const [resource = "", id = "", ...rest] = decode(path.slice(ROOT.length + 1)).split("/");
  const handle = path.startsWith(`${ROOT}/`) && rest.length === 0 ? HANDLERS[resource] : undefined;
  if (!handle) throw unknownPath();
  // Before the body, which nobody else gets read.
  await requireProvisioner(options.store.reader, record.caller);
  const location = `${options.baseUrl()}${ROOT}`;
  const query = new URLSearchParams(search);
  return handle({ options, caller: record.caller, req, query, id, location });
}

const HANDLERS: Readonly<Record<string, (request: ScimRequest) => Promise<ScimAnswer>>> = {
  ServiceProviderConfig: async (request) => discover(request, serviceProviderConfig(request.location)),
  ResourceTypes: async (request) => discoverEach(request, resourceTypes(request.location)),
  Schemas: async (request) => discoverEach(request, schemas(request.location)),
  Users: users,
  Groups: groups,
};

function discover({ req }: ScimRequest, body: object): ScimAnswer {
  if (req.method !== "GET") throw wrongMethod("GET");
  return { status: 200, body };
}

async function discoverEach(
  request: ScimRequest,
  all: readonly { readonly id: string }[],
): Promise<ScimAnswer> {
  const found = all.find(({ id }) => id === request.id);
  if (request.id !== "" && !found) throw unknownPath();
  return discover(request, found ?? listOf(all, all.length, 1));
}

async function users({ options, caller, req, query, id, location }: ScimRequest): Promise<ScimAnswer> {
  const json = (user: Parameters<typeof scimUserJson>[0]) => scimUserJson(user, location);
  switch (`${req.method} ${id === "" ? "all" : "one"}`) {
    case "GET all": {
      const { startIndex, count } = scimPage(query);
      const filter = scimFilter(query.get("filter"), USER_FILTERS);
      const found = await listScimUsers(options, caller, filter, startIndex - 1, count);
      return { status: 200, body: listOf(found.resources.map(json), found.total, startIndex) };
    }
    case "POST all":
      return { status: 201, body: json(await createScimUser(options, caller, await readJson(req))) };
    case "GET one":
      return { status: 200, body: json(await getScimUser(options, caller, id)) };
    case "PUT one":
      return { status: 200, body: json(await replaceScimUser(options, caller, id, await readJson(req))) };
    case "PATCH one":
      return { status: 200, body: json(await patchScimUser(options, caller, id, await readJson(req))) };
    case "DELETE one":
      await deleteScimUser(options, caller, id);
      return { status: 204 };
    default:
      throw wrongMethod(id === "" ? "GET, POST" : "GET, PUT, PATCH, DELETE");
  }
}

async function groups({ options, caller, req, query, id, location }: ScimRequest): Promise<ScimAnswer> {
  const withMembers = !(query.get("excludedAttributes") ?? "").toLowerCase().split(",").includes("members");
  const json = (group: Parameters<typeof scimGroupJson>[0]) => scimGroupJson(group, location, withMembers);
  switch (`${req.method} ${id === "" ? "all" : "one"}`) {
    case "GET all": {
      const { startIndex, count } = scimPage(query);
      const filter = scimFilter(query.get("filter"), GROUP_FILTERS);
      const found = await listScimGroups(options, caller, filter, startIndex - 1, count, withMembers);
      return { status: 200, body: listOf(found.resources.map(json), found.total, startIndex) };
    }
    case "POST all":
      return { status: 201, body: json(await createScimGroup(options, caller, await readJson(req))) };
    case "GET one":
      return { status: 200, body: json(await getScimGroup(options, caller, id, withMembers)) };
    case "PUT one":
      return { status: 200, body: json(await replaceScimGroup(options, caller, id, await readJson(req))) };
    case "PATCH one":
      return { status: 200, body: json(await patchScimGroup(options, caller, id, await readJson(req))) };
    case "DELETE one":
      await deleteScimGroup(options, caller, id);
      return { status: 204 };
    default:
      throw wrongMethod(id === "" ? "GET, POST" : "GET, PUT, PATCH, DELETE");
  }
}

function listOf(resources: readonly object[], totalResults: number, startIndex: number): object {
  return {
    schemas: [LIST_SCHEMA],
    totalResults,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  };
}

async function readJson(req: HttpRequest): Promise<unknown> {
  if (!/^application\/(?:scim\+)?json(?:;|$)/i.test(req.headers["content-type"] ?? "")) {
    const allowed = "application/scim+json";
    throw writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, `send ${allowed}`, { allowed });
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) {
      const limit = String(MAX_BODY_BYTES);
      throw writeConnectError(ErrorReason.BODY_TOO_LARGE, "the request is too large", { limit_bytes: limit });
    }
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new DomainError(ErrorReason.BODY_MALFORMED, "the request is no JSON");
  }
}

/** The kinds of errors of RFC 7644, 3.12, by the reason; by the field where that is a part of the query. */
const SCIM_TYPES: Readonly<Partial<Record<ErrorReason, string>>> = {
  [ErrorReason.BODY_MALFORMED]: "invalidSyntax",
  [ErrorReason.VALUE_UNUSABLE]: "invalidValue",
  [ErrorReason.VALUE_TAKEN]: "uniqueness",
};
const FIELD_TYPES: Readonly<Record<string, string>> = { filter: "invalidFilter", path: "invalidPath" };

function writeScimError(
  res: HttpResponse,
  record: CallRecord,
  thrown: unknown,
  error: ConnectError,
): Promise<void> {
  const cause = thrown instanceof DomainError ? thrown : undefined;
  const scimType = cause && (FIELD_TYPES[cause.metadata.field ?? ""] ?? SCIM_TYPES[cause.reason]);
  const allowed = error.metadata.get("allow");
  const status = allowed ? 405 : codeToHttpStatus(error.code);
  if (allowed) res.setHeader("allow", allowed);
  if (status === 401) res.setHeader("www-authenticate", "Bearer");
  return write(res, record, status, {
    schemas: [ERROR_SCHEMA],
    status: String(status),
    ...(scimType && { scimType }),
    detail: error.rawMessage,
  });
}

function wrongMethod(allowed: string): ConnectError {
  const message = `this is asked for with ${allowed}`;
  const error = writeConnectError(ErrorReason.TRANSPORT_UNSUPPORTED, message, { allowed });
  error.metadata.set("allow", allowed);
  return error;
}

function unknownPath(): DomainError {
  return new DomainError(ErrorReason.NOT_FOUND, "nothing is served under this path", { resource: "path" });
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
