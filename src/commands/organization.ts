import { create } from "@bufbuild/protobuf";
import { CreateOrganizationRequestSchema } from "#gen/service/v1/organization_service_pb.js";
import type { DataConfig } from "../config/config.ts";
import { DomainError } from "../domain/error.ts";
import { createCheck } from "../rpc/check.ts";
import { createOrganizationWithToken } from "../services/access/organization-creation.ts";
import type { StoredOrganization } from "../store/identity/organization.ts";
import { findOrganizations, findOrganizationsWithBytes } from "../store/identity/organization.ts";
import type { Store } from "../store/store.ts";
import type { Listing } from "./definitions/command-line.ts";
import { openExistingData, requireExistingData, rethrowDomainError } from "./open-data.ts";
import { openDataReadOnly } from "./open-read-only.ts";
import { checkPerson } from "./person.ts";
import { StartError } from "./start-error.ts";
import { argumentWords } from "./terminal/argument-words.ts";

export interface OrganizationOptions {
  readonly name: string;
  /** The email address of the first administrator. */
  readonly email: string;
  readonly administratorName: string;
}

/**
 * Creates an organization as the operator. Works while a server runs.
 *
 * @returns its id and its administrator's first token, in lines for the person at the terminal
 * @throws StartError for a name that the contract refuses, or an address that is invalid or of a blocked account
 */
export async function createOrganization(config: DataConfig, options: OrganizationOptions): Promise<string> {
  const { name, email, administratorName } = options;
  checkName(name);
  checkPerson(email, administratorName);
  const { store, keys } = await openExistingData(config);
  try {
    const { organizationId, userId, token } = await createOrganizationWithToken(store, keys, {
      operation: "chartroom organization create",
      organizationName: name,
      accountName: administratorName,
      email,
      tokenDescription: "first token",
    }).catch(rethrowDomainError);
    return `organization ${organizationId}\nadministrator ${userId}\n${token}\n`;
  } finally {
    await store.close();
  }
}

/**
 * Lists the organizations: id, stored bytes and name. Works on a full disk, to show what fills it.
 *
 * @throws StartError when there is no data, or it cannot be read
 */
export async function listOrganizations(config: DataConfig): Promise<Listing> {
  await requireExistingData(config);
  const store = await openDataReadOnly(config);
  try {
    const all = await findOrganizationsWithBytes(store.reader);
    const width = Math.max(0, ...all.map(({ bytes }) => String(bytes).length));
    const rows = all.map(({ id, name, bytes }) => [id, String(bytes).padStart(width), name]);
    return { headings: ["ORGANIZATION", "BYTES", "NAME"], rows };
  } finally {
    await store.close();
  }
}

/**
 * Finds the organization that the operator names.
 *
 * @param named its id, or its name if that is unique; undefined for the only organization
 * @throws StartError when none or more than one matches
 */
export async function resolveOrganization(
  store: Store,
  named: string | undefined,
): Promise<StoredOrganization> {
  const all = await findOrganizations(store.reader);
  const fitting = all.filter(
    ({ id, name }) => named === undefined || id === named.toLowerCase() || name === named,
  );
  const [organization, other] = fitting;
  if (!organization)
    throw new StartError(
      named === undefined ? "there is no organization" : `no organization has the id or name ${named}`,
    );
  if (!other) return organization;
  const choices = fitting.map(({ id, name }) => `  ${id}  ${name}`).join("\n");
  const problem =
    named === undefined
      ? "there is more than one organization: choose one with --organization"
      : "more than one organization has the name: choose one by its id";
  throw new StartError(`${problem}\n${choices}`);
}

function checkName(name: string): void {
  try {
    createCheck()(CreateOrganizationRequestSchema, create(CreateOrganizationRequestSchema, { name }));
  } catch (error) {
    if (error instanceof DomainError) throw new StartError(argumentWords(error.message, "--name"));
    throw error;
  }
}
