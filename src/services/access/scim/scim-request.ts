import { notFound } from "../../../domain/error.ts";
import type { Caller } from "../../../domain/identity/caller.ts";
import {
  type AttributeSelection,
  isSelected,
  selectAttributes,
  selectionOf,
} from "../../../domain/identity/scim/scim-attributes.ts";
import { scimGroupJson } from "../../../domain/identity/scim/scim-group.ts";
import { type ScimResource, scimFilter, scimPage } from "../../../domain/identity/scim/scim-json.ts";
import { scimUserJson } from "../../../domain/identity/scim/scim-user.ts";
import { resourceTypes, schemas, serviceProviderConfig } from "./discovery.ts";
import { requireProvisioner, type ScimDependencies } from "./provisioner.ts";
import {
  createScimGroup,
  deleteScimGroup,
  getScimGroup,
  listScimGroups,
  patchScimGroup,
  replaceScimGroup,
} from "./scim-groups.ts";
import {
  createScimUser,
  deleteScimUser,
  getScimUser,
  listScimUsers,
  patchScimUser,
  replaceScimUser,
} from "./scim-users.ts";

const LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

const USER_FILTERS = ["username", "externalid", "id", "emails.value", 'emails[type eq "work"].value'];
const GROUP_FILTERS = ["displayname", "externalid", "id"];

/** A request whose body has not been read yet. */
export interface ScimRequest {
  readonly options: ScimDependencies;
  readonly caller: Caller;
  readonly method: string;
  /** Name of the collection, such as `Users`. */
  readonly resource: string;
  /** Empty for the collection. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** Base URL of the server's SCIM. */
  readonly location: string;
  /** Reads the body, which is JSON. */
  readonly readJson: () => Promise<unknown>;
}

/** The response to a request. */
export interface ScimAnswer {
  readonly status: number;
  /** Undefined for none. */
  readonly body?: object;
  /** URL of the created resource. */
  readonly location?: string;
  /** The methods that the resource supports, for status 405. */
  readonly allowed?: string;
}

/** Handles a request of a provisioner. @throws DomainError */
export async function handleScim(request: ScimRequest): Promise<ScimAnswer> {
  // Checked before the body is read, which happens only for provisioners.
  await requireProvisioner(request.options.store.reader, request.caller);
  const handle = Object.hasOwn(HANDLERS, request.resource) ? HANDLERS[request.resource] : undefined;
  if (!handle) throw notFound("path");
  return handle(request);
}

const HANDLERS: Readonly<Record<string, (request: ScimRequest) => Promise<ScimAnswer>>> = {
  ServiceProviderConfig: async (request) => discover(request, serviceProviderConfig(request.location)),
  ResourceTypes: async (request) => discoverEach(request, resourceTypes(request.location)),
  Schemas: async (request) => discoverEach(request, schemas(request.location)),
  Users: users,
  Groups: groups,
};

function discover({ method }: ScimRequest, body: object): ScimAnswer {
  if (method !== "GET") return wrongMethod("GET");
  return { status: 200, body };
}

async function discoverEach(
  request: ScimRequest,
  all: readonly { readonly id: string }[],
): Promise<ScimAnswer> {
  const found = all.find(({ id }) => id === request.id);
  if (request.id !== "" && !found) throw notFound("path");
  return discover(request, found ?? listOf(all, all.length, 1));
}

async function users({
  options,
  caller,
  method,
  query,
  id,
  location,
  readJson,
}: ScimRequest): Promise<ScimAnswer> {
  const selection = selectionOf(query);
  const whole = (user: Parameters<typeof scimUserJson>[0]) => scimUserJson(user, location);
  const json = (user: Parameters<typeof scimUserJson>[0]) => selectAttributes(whole(user), selection);
  switch (`${method} ${id === "" ? "all" : "one"}`) {
    case "GET all": {
      const { startIndex, count } = scimPage(query);
      const filter = scimFilter(query.get("filter"), USER_FILTERS);
      const found = await listScimUsers(options, caller, filter, startIndex - 1, count);
      return { status: 200, body: listOf(found.resources.map(json), found.total, startIndex) };
    }
    case "POST all":
      return created(whole(await createScimUser(options, caller, await readJson())), selection);
    case "GET one":
      return { status: 200, body: json(await getScimUser(options, caller, id)) };
    case "PUT one":
      return { status: 200, body: json(await replaceScimUser(options, caller, id, await readJson())) };
    case "PATCH one":
      return { status: 200, body: json(await patchScimUser(options, caller, id, await readJson())) };
    case "DELETE one":
      await deleteScimUser(options, caller, id);
      return { status: 204 };
    default:
      return wrongMethod(id === "" ? "GET, POST" : "GET, PUT, PATCH, DELETE");
  }
}

async function groups({
  options,
  caller,
  method,
  query,
  id,
  location,
  readJson,
}: ScimRequest): Promise<ScimAnswer> {
  const selection = selectionOf(query);
  const withMembers = isSelected(selection, "members");
  const whole = (group: Parameters<typeof scimGroupJson>[0]) => scimGroupJson(group, location, withMembers);
  const json = (group: Parameters<typeof scimGroupJson>[0]) => selectAttributes(whole(group), selection);
  switch (`${method} ${id === "" ? "all" : "one"}`) {
    case "GET all": {
      const { startIndex, count } = scimPage(query);
      const filter = scimFilter(query.get("filter"), GROUP_FILTERS);
      const found = await listScimGroups(options, caller, filter, startIndex - 1, count, withMembers);
      return { status: 200, body: listOf(found.resources.map(json), found.total, startIndex) };
    }
    case "POST all":
      return created(whole(await createScimGroup(options, caller, await readJson())), selection);
    case "GET one":
      return { status: 200, body: json(await getScimGroup(options, caller, id, withMembers)) };
    case "PUT one":
      return { status: 200, body: json(await replaceScimGroup(options, caller, id, await readJson())) };
    case "PATCH one":
      return { status: 200, body: json(await patchScimGroup(options, caller, id, await readJson())) };
    case "DELETE one":
      await deleteScimGroup(options, caller, id);
      return { status: 204 };
    default:
      return wrongMethod(id === "" ? "GET, POST" : "GET, PUT, PATCH, DELETE");
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

function created(resource: ScimResource, selection: AttributeSelection): ScimAnswer {
  return { status: 201, body: selectAttributes(resource, selection), location: resource.meta.location };
}

function wrongMethod(allowed: string): ScimAnswer {
  return { status: 405, allowed };
}
