import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { isJsonObject } from "../../domain/json-object.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { call, readAll } from "../client/call.ts";
import type { ServerAccess } from "../client/server-access.ts";
import { type Path, valueAt } from "./folder.ts";
import { type Kind, settableJson } from "./kind.ts";
import { KINDS } from "./kinds.ts";

/** The annotation with the folder that a resource belongs to. */
export const OWNER_ANNOTATION = "chartroom/owner";

/** A resource on the server. */
export interface CurrentResource {
  readonly kind: Kind;
  readonly id: string;
  /** Empty for a kind that an organization has only one of. */
  readonly name: string;
  /** The folder that it belongs to; undefined for none. */
  readonly owner: string | undefined;
  readonly message: MessageShape<DescMessage>;
  /** Its document as in a file. */
  readonly json: JsonObject;
}

/** Reads the resources of the kinds that files describe, except those that are being removed. @throws StartError */
export async function readCurrent(access: ServerAccess, organizationId: string): Promise<CurrentResource[]> {
  const all: CurrentResource[] = [];
  for (const kind of KINDS) {
    const messages = await listOf(access, organizationId, kind.name);
    for (const message of messages) {
      const { id = organizationId } = message as unknown as { readonly id?: string };
      const json = settableJson(kind, message);
      const owner = ownerIn(kind, json);
      // A file may enable a disabled class.
      const isRemoved = kind.name !== "EnvironmentClass" && kind.isGone?.(message);
      const document = withoutServerDefaults(kind, withoutOwner(kind, json), message);
      const name = kind.nameField ? String(valueAt(json, kind.nameField) ?? "") : "";
      if (!isRemoved) all.push({ kind, id, name, owner, message, json: document });
    }
  }
  return all;
}

function ownerIn({ annotationsField }: Kind, json: JsonObject): string | undefined {
  const owner = annotationsField && valueAt(json, [...annotationsField, OWNER_ANNOTATION]);
  return typeof owner === "string" ? owner : undefined;
}

/**
 * Returns a document without the values that the server fills in: a workflow's executor if that is its creator, and
 * the list of what cannot be blocked.
 * @param message the resource on the server; undefined for one to create
 */
export function withoutServerDefaults(
  { name }: Kind,
  json: JsonObject,
  message: MessageShape<DescMessage> | undefined,
): JsonObject {
  const copy = structuredClone(json);
  const { metadata, vetoExecPolicy } = copy;
  const creator = (message as unknown as { metadata?: { creator?: { readonly id: string } } } | undefined)
    ?.metadata?.creator?.id;
  if (name === "Workflow" && isJsonObject(metadata) && valueAt(metadata, ["executor", "id"]) === creator)
    delete metadata.executor;
  if (isJsonObject(vetoExecPolicy)) delete vetoExecPolicy.safelist;
  return copy;
}

/** Returns a resource's document without the owner, which the folder specifies. */
export function withoutOwner({ annotationsField }: Kind, json: JsonObject): JsonObject {
  const copy = structuredClone(json);
  if (!annotationsField) return copy;
  const annotations = valueAt(copy, annotationsField);
  if (isJsonObject(annotations)) delete annotations[OWNER_ANNOTATION];
  removeEmpty(copy, annotationsField);
  return copy;
}

/** Returns the annotations in a document. */
export function annotationsIn({ annotationsField }: Kind, json: JsonObject): Record<string, string> {
  const found = annotationsField && valueAt(json, annotationsField);
  return isJsonObject(found) ? (found as Record<string, string>) : {};
}

/** Removes the empty objects on a path. */
function removeEmpty(json: JsonObject, path: Path): void {
  const [first, ...rest] = path;
  const name = String(first);
  const value: JsonValue | undefined = json[name];
  if (!isJsonObject(value)) return;
  if (rest.length > 0) removeEmpty(value, rest);
  if (Object.keys(value).length === 0) delete json[name];
}

function listOf(
  access: ServerAccess,
  organizationId: string,
  kind: string,
): Promise<readonly MessageShape<DescMessage>[]> {
  const transport = createHttpTransport(access.server);
  switch (kind) {
    case "Project": {
      const client = createClient(ProjectService, transport);
      // By id, which is the order of creation: pages sorted by popularity could skip a project.
      const sort = { field: "id" };
      return readAll(
        access,
        (pagination, options) => client.listProjects({ pagination, sort }, options),
        ({ projects }) => projects,
      );
    }
    case "Workflow": {
      const client = createClient(WorkflowService, transport);
      return readAll(
        access,
        (pagination, options) => client.listWorkflows({ pagination }, options),
        ({ workflows }) => workflows,
      );
    }
    case "Group": {
      const client = createClient(GroupService, transport);
      return readAll(
        access,
        (pagination, options) => client.listGroups({ pagination }, options),
        ({ groups }) => groups,
      );
    }
    case "EnvironmentClass": {
      const client = createClient(RunnerConfigurationService, transport);
      return readAll(
        access,
        (pagination, options) => client.listEnvironmentClasses({ pagination }, options),
        ({ environmentClasses }) => environmentClasses,
      );
    }
    case "SecurityPolicy": {
      const client = createClient(SecurityService, transport);
      return readAll(
        access,
        (pagination, options) => client.listSecurityPolicies({ pagination }, options),
        ({ securityPolicies }) => securityPolicies,
      );
    }
    default: {
      const client = createClient(OrganizationService, transport);
      return call(access, (options) => client.getOrganizationPolicies({ organizationId }, options)).then(
        ({ policies }) => (policies ? [policies] : []),
      );
    }
  }
}
