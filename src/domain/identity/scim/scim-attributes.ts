import { valueUnusable } from "../../error.ts";
import { nameOf, type ScimResource } from "./scim-json.ts";

/** Which attributes of a resource the client wants (RFC 7644, 3.9). */
export interface AttributeSelection {
  /** True if only the named attributes are returned; otherwise all but these are. */
  readonly isOnly: boolean;
  /** Names in lower case, such as `name.familyname`. */
  readonly names: ReadonlySet<string>;
}

/** Attributes that each resource has, whatever the client asks for (RFC 7643, 3.1 and 7). */
const ALWAYS: readonly string[] = ["id", "schemas"];

/** The notation of RFC 7644, 3.10; the prefix of a schema is removed before. */
const NOTATION = /^[a-z$][\w$-]*(?:\.[a-z$][\w$-]*)?$/;
const EXTENSION = /^urn:[\w.:-]+$/;

/**
 * Returns which attributes the query of a request selects. Names of attributes that the server does not have select
 * nothing.
 * @throws DomainError VALUE_UNUSABLE for both parameters at once, and for a name that cannot be one
 */
export function selectionOf(query: URLSearchParams): AttributeSelection {
  const only = namesIn(query, "attributes");
  const excluded = namesIn(query, "excludedAttributes");
  if (only.size > 0 && excluded.size > 0)
    throw valueUnusable("attributes", "a request has either attributes or excludedAttributes, not both");
  return only.size > 0 ? { isOnly: true, names: only } : { isOnly: false, names: excluded };
}

/** Returns whether a resource is to have any of an attribute. @param name in lower case */
export function isSelected({ isOnly, names }: AttributeSelection, name: string): boolean {
  if (ALWAYS.includes(name)) return true;
  if (!isOnly) return !names.has(name);
  return names.has(name) || [...names].some((each) => each.startsWith(`${name}.`));
}

/** Returns a resource with the selected attributes. */
export function selectAttributes(resource: ScimResource, selection: AttributeSelection): object {
  if (selection.names.size === 0) return resource;
  return Object.fromEntries(
    Object.entries(resource).flatMap(([attribute, value]) => {
      const name = attribute.toLowerCase();
      if (!isSelected(selection, name)) return [];
      return [[attribute, ALWAYS.includes(name) ? value : selectParts(value, name, selection)]];
    }),
  );
}

/** Returns the selected parts of a complex attribute, or of each of its values. */
function selectParts(value: unknown, name: string, selection: AttributeSelection): unknown {
  if (Array.isArray(value)) return value.map((each) => selectParts(each, name, selection));
  if (typeof value !== "object" || value === null) return value;
  const { isOnly, names } = selection;
  if (isOnly && names.has(name)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([part]) => names.has(`${name}.${part.toLowerCase()}`) === isOnly),
  );
}

function namesIn(query: URLSearchParams, parameter: string): Set<string> {
  const names = query
    .getAll(parameter)
    .flatMap((list) => list.split(","))
    .map((name) => nameOf(name.trim()))
    .filter((name) => name !== "");
  if (names.every((name) => NOTATION.test(name) || EXTENSION.test(name))) return new Set(names);
  throw valueUnusable(parameter, `${parameter} must be names of attributes, separated by commas`);
}
