import type { DescMessage, DescService, MessageShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { call, readPages } from "../client/call.ts";
import type { ServerAccess } from "../client/server-access.ts";
import { isObject, type Json, type JsonObject, type Path, valueAt } from "./folder.ts";
import { type Kind, settableJson } from "./kind.ts";
import { KINDS } from "./kinds.ts";

/** The annotation that says which folder a resource belongs to. */
export const OWNER = "chartroom/owner";

/** A resource that the server has. */
export interface CurrentResource {
  readonly kind: Kind;
  readonly id: string;
  /** Empty for what an organization has one of. */
  readonly name: string;
  /** The folder that it belongs to; undefined for none. */
  readonly owner: string | undefined;
  readonly message: MessageShape<DescMessage>;
  /** What a file says of it. */
  readonly json: JsonObject;
}

/** Reads the resources of the kinds that files describe, without those that are being removed. @throws StartError */
export async function readCurrent(access: ServerAccess, organizationId: string): Promise<CurrentResource[]> {
  const all: CurrentResource[] = [];
  for (const kind of KINDS) {
    const messages = await listOf(access, organizationId, kind.name);
    for (const message of messages) {
      const { id = organizationId } = message as unknown as { readonly id?: string };
      const json = settableJson(kind, message);
      const owner = ownerIn(kind, json);
      const isRemoved = kind.name !== "EnvironmentClass" && kind.isGone?.(message);
      const document = asWritten(kind, withoutOwner(kind, json), message);
      const name = kind.nameField ? String(valueAt(json, kind.nameField) ?? "") : "";
      if (!isRemoved) all.push({ kind, id, name, owner, message, json: document });
    }
  }
  return all;
}

function ownerIn({ annotationsField }: Kind, json: JsonObject): string | undefined {
  const owner = annotationsField && valueAt(json, [...annotationsField, OWNER]);
  return typeof owner === "string" ? owner : undefined;
}

/**
 * Returns a document without what the server fills in by itself: the executor that is the creator of a workflow, and
 * the list of what cannot be blocked.
 * @param message the resource as the server has it; undefined for one that is to be created
 */
export function asWritten(
  { name }: Kind,
  json: JsonObject,
  message: MessageShape<DescMessage> | undefined,
): JsonObject {
  const copy = structuredClone(json);
  const { metadata, vetoExecPolicy } = copy;
  const creator = (message as unknown as { metadata?: { creator?: { readonly id: string } } } | undefined)
    ?.metadata?.creator?.id;
  if (name === "Workflow" && isObject(metadata) && valueAt(metadata, ["executor", "id"]) === creator)
    delete metadata.executor;
  if (isObject(vetoExecPolicy)) delete vetoExecPolicy.safelist;
  return copy;
}

/** Returns what a file says of a resource, without the owner, which the folder says. */
export function withoutOwner({ annotationsField }: Kind, json: JsonObject): JsonObject {
  const copy = structuredClone(json);
  if (!annotationsField) return copy;
  const annotations = valueAt(copy, annotationsField);
  if (isObject(annotations)) delete annotations[OWNER];
  removeEmpty(copy, annotationsField);
  return copy;
}

/** Returns the annotations that a document says. */
export function annotationsIn({ annotationsField }: Kind, json: JsonObject): Record<string, string> {
  const found = annotationsField && valueAt(json, annotationsField);
  return isObject(found) ? (found as Record<string, string>) : {};
}

/** Removes the objects on a path that hold nothing. */
function removeEmpty(json: JsonObject, path: Path): void {
  const [first, ...rest] = path;
  const name = String(first);
  const value: Json | undefined = json[name];
  if (!isObject(value)) return;
  if (rest.length > 0) removeEmpty(value, rest);
  if (Object.keys(value).length === 0) delete json[name];
}

function listOf(
  access: ServerAccess,
  organizationId: string,
  kind: string,
): Promise<MessageShape<DescMessage>[]> {
  const of = <D extends DescService>(service: D): Client<D> =>
    createClient(service, createHttpTransport(access.server));
  const all = Number.POSITIVE_INFINITY;
  switch (kind) {
    case "Project":
      // In the order of creation: pages by popularity may leave one out.
      return readPages(all, async (pagination) => {
        const page = await call(access, (options) =>
          of(ProjectService).listProjects({ pagination, sort: { field: "id" } }, options),
        );
        return { elements: page.projects, pagination: page.pagination };
      });
    case "Workflow":
      return readPages(all, async (pagination) => {
        const page = await call(access, (options) =>
          of(WorkflowService).listWorkflows({ pagination }, options),
        );
        return { elements: page.workflows, pagination: page.pagination };
      });
    case "Group":
      return readPages(all, async (pagination) => {
        const page = await call(access, (options) => of(GroupService).listGroups({ pagination }, options));
        return { elements: page.groups, pagination: page.pagination };
      });
    case "EnvironmentClass":
      return readPages(all, async (pagination) => {
        const page = await call(access, (options) =>
          of(RunnerConfigurationService).listEnvironmentClasses({ pagination }, options),
        );
        return { elements: page.environmentClasses, pagination: page.pagination };
      });
    case "SecurityPolicy":
      return readPages(all, async (pagination) => {
        const page = await call(access, (options) =>
          of(SecurityService).listSecurityPolicies({ pagination }, options),
        );
        return { elements: page.securityPolicies, pagination: page.pagination };
      });
    default:
      return call(access, (options) =>
        of(OrganizationService).getOrganizationPolicies({ organizationId }, options),
      ).then(({ policies }) => (policies ? [policies] : []));
  }
}
