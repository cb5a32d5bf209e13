import {
  clearField,
  clone,
  create,
  type DescField,
  type DescMessage,
  isFieldSet,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { AdmissionLevel } from "#gen/service/v1/environment_pb.js";
import { type OrganizationPolicies, OrganizationPoliciesSchema } from "#gen/service/v1/organization_pb.js";
import {
  type UpdateOrganizationPoliciesRequest,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { notEnterprise, valueUnusable } from "../error.ts";
import { maskedPaths } from "../field-mask.ts";
import type { ConfiguredPolicies, PolicyOrigin, PolicyOrigins } from "./policies.ts";
import { valueAt } from "./policy-decision.ts";

type Values = Record<string, unknown>;

/**
 * Returns the policies after an update: a field that it sets replaces the stored value, a field
 * that only its mask names goes back to the default, and the others stay.
 * @throws DomainError FIELD_MASK_INVALID; VALUE_UNUSABLE for a default editor that is not allowed
 */
export function updatedPolicies(
  before: ConfiguredPolicies,
  update: UpdateOrganizationPoliciesRequest,
  origin: PolicyOrigin,
): ConfiguredPolicies {
  const cleared = maskedPaths(UpdateOrganizationPoliciesRequestSchema, update.updateMask, [
    "organization_id",
  ]);
  const policies = clone(OrganizationPoliciesSchema, before.policies);
  const touched: string[] = [];
  merge(
    { stored: policies, schema: OrganizationPoliciesSchema, json: "" },
    {
      update,
      schema: UpdateOrganizationPoliciesRequestSchema,
      path: "",
    },
    cleared,
    touched,
  );
  normalize(policies);
  requireDefaultEditorAllowed(policies);
  return { policies, origins: changedOrigins(before, policies, touched, origin) };
}

/**
 * Returns the policies without those that are reserved for organizations that the operator marked as
 * enterprise.
 */
export function withoutEnterprise({ policies: present, origins }: ConfiguredPolicies): ConfiguredPolicies {
  const policies = clone(OrganizationPoliciesSchema, present);
  delete policies.archiveEnvironmentsAfter;
  const { archiveEnvironmentsAfter: _, ...others } = origins;
  return { policies, origins: others };
}

/** The target of a merge, and its path in JSON names with a closing dot. */
interface MergeTarget {
  readonly stored: Message;
  readonly schema: DescMessage;
  readonly json: string;
}

/** The source of a merge, and its path in .proto names with a closing dot. */
interface MergeSource {
  readonly update: Message | undefined;
  readonly schema: DescMessage;
  readonly path: string;
}

/**
 * Merges an update. Appends to `touched` the paths in JSON names of the fields that were set or
 * cleared.
 */
function merge(into: MergeTarget, from: MergeSource, cleared: ReadonlySet<string>, touched: string[]): void {
  for (const field of into.schema.fields) {
    const updateField = from.schema.fields.find(({ name }) => name === field.name);
    if (!updateField || field.name === "organization_id") continue;
    const path = from.path + field.name;
    const json = into.json + field.jsonName;
    const isSet = from.update !== undefined && isFieldSet(from.update, updateField);
    const messages = mergedMessages(field, updateField);
    if (messages) {
      if (cleared.has(path)) {
        clearField(into.stored, field);
        touched.push(json);
      }
      const isAffected = isSet || [...cleared].some((each) => each.startsWith(`${path}.`));
      if (!isAffected) continue;
      const nested =
        ((into.stored as unknown as Values)[field.localName] as Message) ?? create(messages.stored);
      const value = isSet
        ? ((from.update as unknown as Values)[updateField.localName] as Message)
        : undefined;
      merge(
        { stored: nested, schema: messages.stored, json: `${json}.` },
        { update: value, schema: messages.update, path: `${path}.` },
        cleared,
        touched,
      );
      if (isSet || hasAnyField(nested, messages.stored)) {
        (into.stored as unknown as Values)[field.localName] = nested;
      }
    } else if (isSet) {
      (into.stored as unknown as Values)[field.localName] = (from.update as unknown as Values)[
        updateField.localName
      ];
      touched.push(json);
    } else if (cleared.has(path)) {
      clearField(into.stored, field);
      touched.push(json);
    }
  }
}

/**
 * Merges a message of changes field by field; a message of the stored type replaces the old one.
 */
function mergedMessages(
  field: DescField,
  updateField: DescField,
): { stored: DescMessage; update: DescMessage } | undefined {
  if (field.fieldKind !== "message" || updateField.fieldKind !== "message") return undefined;
  if (field.message.typeName === updateField.message.typeName) return undefined;
  return { stored: field.message, update: updateField.message };
}

function hasAnyField(message: Message, schema: DescMessage): boolean {
  return schema.fields.some((field) => isFieldSet(message, field));
}

/**
 * Brings values that have two spellings, or that only the server sets, to the form that is stored.
 */
function normalize(policies: OrganizationPolicies): void {
  if (policies.maxPortAdmissionLevel === AdmissionLevel.OWNER_ONLY) {
    policies.maxPortAdmissionLevel = AdmissionLevel.CREATOR_ONLY;
  }
  if (policies.vetoExecPolicy) policies.vetoExecPolicy.safelist = [];
}

function requireDefaultEditorAllowed({ allowedEditorIds, defaultEditorId = "" }: OrganizationPolicies): void {
  if (defaultEditorId === "" || allowedEditorIds.length === 0) return;
  if (allowedEditorIds.includes(defaultEditorId)) return;
  throw valueUnusable(
    "defaultEditorId",
    `defaultEditorId must be one of allowedEditorIds: ${JSON.stringify(defaultEditorId)} is not among them`,
  );
}

/**
 * Returns the origins after an update. An unchanged value keeps its origin; one that went back to
 * its default has none.
 */
function changedOrigins(
  before: ConfiguredPolicies,
  policies: OrganizationPolicies,
  touched: readonly string[],
  origin: PolicyOrigin,
): PolicyOrigins {
  const origins: Record<string, PolicyOrigin> = { ...before.origins };
  const [old, now] = [before.policies, policies].map((each) => toJson(OrganizationPoliciesSchema, each));
  for (const path of touched) {
    const value = valueAt(now, path);
    if (value !== undefined && JSON.stringify(value) === JSON.stringify(valueAt(old, path))) continue;
    for (const known of Object.keys(origins)) {
      if (known === path || known.startsWith(`${path}.`)) delete origins[known];
    }
    if (value !== undefined) origins[path] = origin;
  }
  return origins;
}

/** Requires that an organization is an enterprise, for a field that only those have. @throws DomainError NOT_ENTERPRISE */
export function requireEnterprise(field: string, isEnterprise: boolean): void {
  if (!isEnterprise) throw notEnterprise(field);
}
