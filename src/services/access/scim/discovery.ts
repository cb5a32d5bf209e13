import { GROUP_SCHEMA } from "../../../domain/identity/scim/scim-group.ts";
import { MAX_PAGE_SIZE } from "../../../domain/identity/scim/scim-json.ts";
import { USER_SCHEMA } from "../../../domain/identity/scim/scim-user.ts";

const CONFIG_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";
const TYPE_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const SCHEMA_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:Schema";

/** Returns which SCIM features the server supports (RFC 7643, 5). @param location base URL of the server's SCIM */
export function serviceProviderConfig(location: string): object {
  return {
    schemas: [CONFIG_SCHEMA],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: MAX_PAGE_SIZE },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: false },
    authenticationSchemes: [
      {
        type: "oauthbearertoken",
        name: "Bearer token",
        description: "A token of a service account that was made with provisioning",
        primary: true,
      },
    ],
    meta: { resourceType: "ServiceProviderConfig", location: `${location}/ServiceProviderConfig` },
  };
}

/** Returns the kinds of resources (RFC 7643, 6). */
export function resourceTypes(location: string): { readonly id: string }[] {
  return [
    { name: "User", endpoint: "/Users", schema: USER_SCHEMA },
    { name: "Group", endpoint: "/Groups", schema: GROUP_SCHEMA },
  ].map((type) => ({
    schemas: [TYPE_SCHEMA],
    id: type.name,
    ...type,
    meta: { resourceType: "ResourceType", location: `${location}/ResourceTypes/${type.name}` },
  }));
}

/** Returns the attributes of each kind that the server keeps (RFC 7643, 7). */
export function schemas(location: string): { readonly id: string }[] {
  const schema = (id: string, name: string, attributes: readonly object[]) => ({
    schemas: [SCHEMA_SCHEMA],
    id,
    name,
    attributes,
    meta: { resourceType: "Schema", location: `${location}/Schemas/${id}` },
  });
  return [
    schema(USER_SCHEMA, "User", [
      text("userName", { required: true, uniqueness: "server" }),
      text("displayName"),
      complex("name", false, [text("formatted"), text("givenName"), text("familyName")]),
      attribute("active", "boolean"),
      complex("emails", true, [text("value"), text("type"), attribute("primary", "boolean")], "readOnly"),
    ]),
    schema(GROUP_SCHEMA, "Group", [
      text("displayName", { required: true, uniqueness: "server" }),
      complex("members", true, [
        text("value", { mutability: "immutable" }),
        text("display", { mutability: "readOnly" }),
        text("type", { mutability: "readOnly" }),
        attribute("$ref", "reference", { referenceTypes: ["User"], mutability: "readOnly" }),
      ]),
    ]),
  ];
}

function attribute(name: string, type: string, more: object = {}): object {
  return {
    name,
    type,
    multiValued: false,
    required: false,
    mutability: "readWrite",
    returned: "default",
    ...more,
  };
}

function text(name: string, more: object = {}): object {
  return attribute(name, "string", { caseExact: false, uniqueness: "none", ...more });
}

function complex(
  name: string,
  multiValued: boolean,
  subAttributes: readonly object[],
  mutability = "readWrite",
): object {
  return attribute(name, "complex", { multiValued, mutability, subAttributes });
}
