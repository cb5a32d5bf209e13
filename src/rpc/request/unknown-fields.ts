import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { ResourceService } from "#gen/service/v1/resource_service_pb.js";
import { valueUnusable } from "../../domain/error.ts";

/**
 * Operations that refuse fields which the contract does not know, in JSON and in
 * binary and whatever the server allows elsewhere: callers would rely on a
 * restriction that a newer client sends and an older server drops.
 */
const STRICT: ReadonlySet<unknown> = new Set([
  OrganizationService.method.updateOrganizationPolicies,
  ResourceService.method.applyChanges,
  ResourceService.method.previewChanges,
]);

/** Returns whether an operation always refuses unknown fields. */
export function rejectsUnknownFields(method: unknown): boolean {
  return STRICT.has(method);
}

/**
 * Refuses requests of strict operations with unknown fields at any depth of the
 * binary form; the JSON parser refuses those of JSON.
 *
 * @throws DomainError VALUE_UNUSABLE that names the message and the field's
 *   number
 */
export const requireKnownFields: Interceptor = (next) => (req) => {
  if (!req.stream && rejectsUnknownFields(req.method)) requireKnown(req.method.input, req.message);
  return next(req);
};

function requireKnown(desc: DescMessage, message: Message): void {
  const unknown = message.$unknown?.[0];
  if (unknown) {
    const field = `${desc.typeName}:${unknown.no}`;
    const instead = "this operation refuses what it would not carry out; use the contract of this server";
    throw valueUnusable(field, `${desc.typeName} has no field number ${unknown.no}: ${instead}`);
  }
  for (const field of desc.fields) {
    if (!field.message) continue;
    for (const nested of messagesOf(field, message)) requireKnown(field.message, nested);
  }
}

function messagesOf(field: DescField, message: Message): readonly Message[] {
  const holder = message as unknown as Record<string, unknown>;
  const choice = field.oneof && (holder[field.oneof.localName] as { case?: string; value?: unknown });
  const value = choice
    ? choice.case === field.localName
      ? choice.value
      : undefined
    : holder[field.localName];
  if (value === undefined) return [];
  if (field.fieldKind === "list") return value as Message[];
  if (field.fieldKind === "map") return Object.values(value as Record<string, Message>);
  return [value as Message];
}
