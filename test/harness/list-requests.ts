import type { DescField, DescMethod, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { CONTRACT } from "../../src/rpc/contract.ts";

/** A list request that matches few rows, without its page. */
export interface ListRequest {
  /** Such as `WorkflowService/ListWorkflows filter.disabled: true, by NAME`. */
  readonly name: string;
  /** Such as `WorkflowService/ListWorkflows`. */
  readonly operation: string;
  readonly method: DescMethod;
  /** Added to the operation's basic request: one field of its filter, and an order. */
  readonly fields: JsonObject;
}

/** Lists of what a runner tells, which are no rows. */
const WITHOUT_ROWS = ["EnvironmentService/ListEnvironmentFiles"];

/** An id of no resource. */
const NO_ID = "01900000-0000-7000-8000-00000000ffff";
const NO_URI = "https://git.example.org/team/none.git";
/** Contained in no text that a test stores; one trigram long. */
const NO_TEXT = "zqx";
const LONG_AGO = "1971-01-01T00:00:00Z";
const NOW = "2026-01-01T00:00:00Z";

/** The sort fields of operations whose contract names them by texts. */
const SORTED_BY: Readonly<Record<string, readonly string[]>> = {
  "EventService/ListAuditLogs": ["created_at"],
  "ProjectService/ListProjects": ["id", "popularity"],
  "WorkflowService/ListWorkflowExecutions": ["id"],
};

/**
 * Returns every kind of request of all List operations, derived from the descriptors: no filter,
 * and each filter field alone with values that few or no rows have, in each order and both
 * directions.
 *
 * @throws Error for a field or an order of an unknown kind
 */
export function listRequests(): ListRequest[] {
  return CONTRACT.flatMap((service) =>
    service.methods.flatMap((method) => {
      const operation = `${service.name}/${method.name}`;
      if (!method.name.startsWith("List") || WITHOUT_ROWS.includes(operation)) return [];
      const filters = [{ name: "no filter", fields: {} as JsonObject }, ...filtersOf(method)];
      const sorts = sortsOf(operation, method);
      return filters.flatMap((filter) =>
        sorts.map((sort) => ({
          name: `${operation} ${filter.name}${sort.name}`,
          operation,
          method,
          fields: { ...filter.fields, ...sort.fields },
        })),
      );
    }),
  );
}

function filtersOf({ input }: DescMethod) {
  const filter = input.fields.find(({ name }) => name === "filter");
  return (filter?.message?.fields ?? []).flatMap((field) =>
    valuesOf(field).map((value) => ({
      name: `${field.jsonName}: ${JSON.stringify(value)}`,
      fields: { filter: { [field.jsonName]: value } } as JsonObject,
    })),
  );
}

function valuesOf(field: DescField): JsonValue[] {
  if (field.fieldKind === "map") return [{ [NO_TEXT]: NO_TEXT }];
  if (field.name === "search") return [NO_TEXT];
  if (field.name.endsWith("remote_uris")) return [[NO_URI]];
  // The caller's own organization restricts nothing, and no other can be listed.
  if (field.name === "organization_id") return [];
  // A resource that cannot be read leaves nothing; the operation's own request names one that can.
  if (field.name === "exclude_assigned_to_resource") return [];
  if (field.enum) return field.enum.values.slice(1).map(({ name }) => asElement(field, name));
  if (field.message?.typeName === "google.protobuf.Timestamp") return [LONG_AGO, NOW];
  if (field.message?.typeName === "service.v1.SecretScope") {
    const others = field.message.fields.filter(({ name }) => name !== "organization_id");
    return others.map(({ jsonName }) => ({ [jsonName]: NO_ID }));
  }
  if (field.scalar === ScalarType.BOOL) return [true, false];
  if (field.scalar === ScalarType.STRING) return [asElement(field, NO_ID)];
  throw new Error(`what is rare of ${field} is not known here`);
}

function asElement(field: DescField, value: JsonValue): JsonValue {
  return field.fieldKind === "list" ? [value] : value;
}

function sortsOf(operation: string, { input }: DescMethod): { name: string; fields: JsonObject }[] {
  const sort = input.fields.find(({ name }) => name === "sort");
  const field = sort?.message?.fields.find(({ name }) => name === "field");
  if (!field) return [{ name: "", fields: {} }];
  const names = field.enum ? field.enum.values.map(({ name }) => name) : SORTED_BY[operation];
  if (!names) throw new Error(`what ${operation} can be sorted by is not known here`);
  return names.flatMap((name) =>
    ["SORT_ORDER_ASC", "SORT_ORDER_DESC"].map((order) => ({
      name: `, ${name} ${order.slice("SORT_ORDER_".length)}`,
      fields: { sort: { field: name, order } },
    })),
  );
}
