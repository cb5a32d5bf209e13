import { isDeepStrictEqual } from "node:util";
import type { DescMessage, JsonObject, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type Violation, ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { ConnectError, createClient } from "@connectrpc/connect";
import { ErrorDetailSchema } from "#gen/service/v1/error_reason_pb.js";
import { IdentityService } from "#gen/service/v1/identity_service_pb.js";
import type { ChangedResource, Resource } from "#gen/service/v1/resource_pb.js";
import { type ResourceChangeSchema, ResourceService } from "#gen/service/v1/resource_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { call, keyedCall } from "../client/call.ts";
import type { ServerAccess } from "../client/server-access.ts";
import { StartError } from "../start-error.ts";
import { type CurrentResource, readCurrent } from "./current.ts";
import { type Desired, desiredOf, folderOf, type Matched, match } from "./desired.ts";
import {
  camelCase,
  type FileDocument,
  type Path,
  type Problem,
  problemsError,
  readFolder,
} from "./folder.ts";
import { type Change, documentFieldOf, type Kind, settableJson } from "./kind.ts";
import { KINDS } from "./kinds.ts";
import { type Named, Names } from "./references.ts";

/** Maximum number of changes in one call (contract, ApplyChangesRequest). */
const MAX_CHANGES = 200;

export type Action = "create" | "update" | "remove" | "none";

/** A resource and its planned change. */
export interface PlannedResource {
  readonly action: Action;
  readonly kind: Kind;
  readonly name: string;
  /** Empty for a resource to create. */
  readonly id: string;
  /** Absent for a resource to remove. */
  readonly document?: FileDocument;
  /** The server's message before the change, with ids replaced by names. */
  readonly before?: JsonObject;
  readonly after?: JsonObject;
  /** True for a resource that matches its document but belongs to no folder. */
  readonly isUnowned: boolean;
  readonly changes: readonly MessageInitShape<typeof ResourceChangeSchema>[];
}

/** The changes that make a server match the files. */
export interface Plan {
  readonly owner: string;
  readonly resources: readonly PlannedResource[];
}

/** Scope of a plan. */
export interface PlanOptions {
  /** True to take over resources that belong to no folder and have the name of a document. */
  readonly adopt: boolean;
  /** True to remove resources that belong to the folder but are missing from its files. */
  readonly prune: boolean;
}

/**
 * Compares a folder with a server. The server applies the differences and rolls them back.
 * @throws StartError with the file, the line and the field of each problem
 */
export async function makePlan(
  access: ServerAccess,
  path: string,
  { adopt, prune }: PlanOptions,
): Promise<Plan> {
  const problems: Problem[] = [];
  const { owner, documents } = folderOf(readFolder(path), problems);
  requireNone(problems);
  const organizationId = await organizationOf(access);
  const current = await readCurrent(access, organizationId);
  const matched = match(documents, current, owner, problems);
  requireNone(problems);
  const names = new Names(access, organizationId, namesOf(matched, current));
  const desired: Desired[] = [];
  for (const each of matched) {
    const found = await desiredOf(each, names, { owner, organizationId, adopt }, problems);
    if (found) desired.push(found);
  }
  requireNone(problems);
  const left = current.filter((each) => each.owner === owner && !matched.some(({ id }) => id === each.id));
  const planned = [
    ...inOrder(desired).map(plannedOf),
    ...inOrder(left)
      .reverse()
      .flatMap((each) => removal(each)),
  ];
  return { owner, resources: await preview(access, planned, prune, names) };
}

/**
 * Applies all changes of a plan, or none.
 * @returns the applied plan, with the ids of created resources and without unchanged ones
 * @throws StartError
 */
export async function applyPlan(
  access: ServerAccess,
  { owner, resources }: Plan,
  { prune }: Pick<PlanOptions, "prune">,
): Promise<Plan> {
  const done = withoutUnpruned(resources, prune);
  const sent = sentOf(done);
  if (sent.length === 0) return { owner, resources: done };
  const client = createClient(ResourceService, createHttpTransport(access.server));
  const changes = sent.map(({ change }) => change);
  const answer = await keyedCall(access, (options) => client.applyChanges({ changes }, options)).catch(
    (error: unknown) => {
      throw locatedError(error, sent);
    },
  );
  const ids = new Map(sent.map(({ planned }, at) => [planned, answer.resources[at]?.resourceId ?? ""]));
  return { owner, resources: done.map((each) => ({ ...each, id: ids.get(each) ?? each.id })) };
}

/** Returns the organization that the token acts in. @throws StartError */
export async function organizationOf(access: ServerAccess): Promise<string> {
  const client = createClient(IdentityService, createHttpTransport(access.server));
  const { organizationId } = await call(access, (options) => client.getAuthenticatedIdentity({}, options));
  return organizationId;
}

function requireNone(problems: readonly Problem[]): void {
  if (problems.length > 0) throw problemsError(problems);
}

/**
 * Returns the resources that documents can refer to. A resource that a document describes takes precedence over
 * others with its name.
 */
function namesOf(matched: readonly Matched[], current: readonly CurrentResource[]): Named[] {
  const described = matched.map(({ kind, name, id }) => ({ kind: kind.name, name, id }));
  const others = current.map(({ kind, name, id }) => ({ kind: kind.name, name, id }));
  return [
    ...described,
    ...others.filter(({ kind, name }) => !described.some((each) => each.kind === kind && each.name === name)),
  ];
}

function inOrder<T extends { readonly kind: Kind }>(all: readonly T[]): T[] {
  return all.toSorted((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
}

function plannedOf({ document, kind, name, current, id, changes, isUnowned }: Desired): PlannedResource {
  const action = changes.length === 0 ? "none" : current ? "update" : "create";
  const placeholderId = current ? "" : id;
  const sent = changes.map((change, at) => ({ change, ...(at === 0 && { placeholderId }) }));
  return { action, kind, name, id: current?.id ?? "", document, isUnowned, changes: sent };
}

function removal({ kind, name, id, json, message }: CurrentResource): PlannedResource[] {
  const change: Change | undefined = kind.remove?.(id);
  if (!change || kind.isGone?.(message)) return [];
  return [{ action: "remove", kind, name, id, before: json, isUnowned: false, changes: [{ change }] }];
}

/** A change and its resource. */
interface SentChange {
  readonly planned: PlannedResource;
  readonly change: MessageInitShape<typeof ResourceChangeSchema>;
}

/** Returns resources without those to remove, unless pruning. */
function withoutUnpruned(resources: readonly PlannedResource[], prune: boolean): readonly PlannedResource[] {
  return resources.filter(({ action }) => prune || action !== "remove");
}

/** Returns the changes of resources. @throws StartError for more than fit in one call */
function sentOf(resources: readonly PlannedResource[]): SentChange[] {
  const sent = resources.flatMap((planned) => planned.changes.map((change) => ({ planned, change })));
  if (sent.length <= MAX_CHANGES) return sent;
  throw new StartError(
    `${sent.length} changes are too many at a time, of which there can be ${MAX_CHANGES}: add the files bit by bit`,
  );
}

/** Asks the server what changes would do, and omits those without an effect. @throws StartError */
async function preview(
  access: ServerAccess,
  resources: readonly PlannedResource[],
  prune: boolean,
  names: Names,
): Promise<PlannedResource[]> {
  const sent = sentOf(withoutUnpruned(resources, prune));
  if (sent.length === 0) return [...resources];
  const client = createClient(ResourceService, createHttpTransport(access.server));
  const changes = sent.map(({ change }) => change);
  const answer = await call(access, (options) => client.previewChanges({ changes }, options)).catch(
    (error: unknown) => {
      throw locatedError(error, sent);
    },
  );
  const shown = new Map<PlannedResource, ChangedResource[]>();
  for (const [at, { planned }] of sent.entries()) {
    const changed = answer.resources[at];
    if (changed) shown.set(planned, [...(shown.get(planned) ?? []), changed]);
  }
  // The ids from a preview are never assigned again.
  for (const [{ kind, name }, [first]] of shown)
    if (first) names.replace({ kind: kind.name, name, id: first.resourceId });
  const previewed: PlannedResource[] = [];
  for (const planned of resources) {
    const changed = shown.get(planned);
    previewed.push(changed ? await shownAs(planned, changed, names) : planned);
  }
  return previewed;
}

async function shownAs(
  planned: PlannedResource,
  changed: readonly ChangedResource[],
  names: Names,
): Promise<PlannedResource> {
  const { kind, action } = planned;
  const before = await jsonOf(kind, changed.at(0)?.before, names);
  const after = action === "remove" ? undefined : await jsonOf(kind, changed.at(-1)?.after, names);
  if (before && after && isDeepStrictEqual(before, after)) return { ...planned, action: "none", changes: [] };
  return { ...planned, ...(before && { before }), ...(after && { after }) };
}

async function jsonOf(
  kind: Kind,
  shown: Resource | undefined,
  names: Names,
): Promise<JsonObject | undefined> {
  const message = shown?.resource.value as MessageShape<DescMessage> | undefined;
  return message && names.name(settableJson(kind, message));
}

/**
 * Returns the error of refused changes with the file, line and field of the problem.
 * @param sent the changes in order
 */
function locatedError(error: unknown, sent: readonly SentChange[]): unknown {
  if (!(error instanceof StartError)) return error;
  const refused = ConnectError.from(error.cause);
  const violations = refused.findDetails(ViolationsSchema).flatMap(({ violations: all }) => all);
  const placed = violations.flatMap((violation) => locatedViolation(violation, sent));
  if (placed.length > 0) return problemsError(placed);
  const [detail] = refused.findDetails(ErrorDetailSchema);
  const index = Number(detail?.metadata.change ?? Number.NaN);
  const change = sent[index];
  return change ? locatedAt(change, detail?.metadata.field ?? "", error) : error;
}

function locatedViolation({ field, message = "" }: Violation, sent: readonly SentChange[]) {
  const [list, request, ...inner] = field?.elements ?? [];
  if (list?.subscript.case !== "index" || !request) return [];
  const change = sent[Number(list.subscript.value)];
  const text = inner
    .map(({ fieldName, subscript }) => {
      const name = camelCase(fieldName ?? "");
      return subscript.case === "index" ? `${name}[${subscript.value}]` : name;
    })
    .join(".");
  return change ? problemOf(change, text, message) : [];
}

function locatedAt(change: SentChange, field: string, error: StartError): StartError {
  const [problem] = problemOf(change, field, error.message);
  if (problem) return problemsError([problem]);
  const { kind, name } = change.planned;
  return new StartError(`${kind.name}/${name}: ${error.message}`, {
    exitCode: error.exitCode,
    cause: error.cause,
  });
}

/** Returns a document's problem; undefined for a resource without a document. */
function problemOf({ planned }: SentChange, field: string, message: string) {
  const { document, kind } = planned;
  if (!document) return [];
  const place = field === "" ? "" : documentFieldOf(kind, field);
  return [{ file: document.file, line: document.lineOf(pathOf(place)), field: place, message }];
}

function pathOf(text: string): Path {
  return (text.match(/[^.[\]]+/g) ?? []).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
