import { writeFile } from "node:fs/promises";
import type { Keys } from "../keys.ts";
import {
  createFirstOrganization,
  createOrganizationWithToken,
  createSignInLinkAsOperator,
} from "../services/access/organization-creation.ts";
import type { Store } from "../store/store.ts";
import { StartError } from "./start-error.ts";

/** The secrets that the first start prints: a token, and the secret of a sign-in link. */
export interface FirstTokens {
  readonly organizationId: string;
  readonly token: string;
  readonly link: string;
}

/** Creates the first organization; returns undefined when there already is one. */
export async function firstTokens(
  store: Store,
  keys: Keys,
  organizationName = "My organization",
): Promise<FirstTokens | undefined> {
  const first = await createFirstOrganization(store, keys, organizationOf(organizationName));
  return first && withLink(store, keys, first);
}

/** Creates another organization after the first start. Its administrator has the same account. */
export async function createFurtherOrganization(
  store: Store,
  keys: Keys,
  organizationName: string,
): Promise<FirstTokens> {
  const made = await createOrganizationWithToken(store, keys, organizationOf(organizationName));
  return withLink(store, keys, made);
}

const organizationOf = (organizationName: string) => ({
  operation: "chartroom serve",
  organizationName,
  accountName: "Administrator",
  email: "admin@localhost",
  tokenDescription: "first start",
});

async function withLink(
  store: Store,
  keys: Keys,
  { organizationId, token, userId }: Omit<FirstTokens, "link"> & { readonly userId: string },
): Promise<FirstTokens> {
  const link = await createSignInLinkAsOperator(store, keys, userId, "chartroom serve");
  return { organizationId, token, link };
}

/** Returns the sign-in link's address for a browser. */
export const signInAddress = (url: string, { link }: Pick<FirstTokens, "link">): string =>
  `${url}/sign-in#${link}`;

/** Printed when the last organization was removed. */
export const NO_ORGANIZATION = `
There is no organization any more: make one with "chartroom organization create".

`;

/**
 * Writes the first token to the file in the settings, or includes it in the output.
 * @param place location of the data, so that the operator notices a mistyped folder or database
 * @returns the text to print
 */
export async function deliverFirstTokens(
  file: string,
  place: string,
  url: string,
  first: FirstTokens,
): Promise<string> {
  if (file === "") return welcome(place, url, first);
  await writeFile(file, `${first.token}\n`, { mode: 0o600, flag: "wx" }).catch((error) => {
    throw new StartError(
      `--first-token-file ${file} cannot be written (${error.message}): start again without it, and make a token with chartroom token create`,
    );
  });
  return `
${firstStartIn(place)}
The administrator's access token, valid for 30 days, is in ${file}.

`;
}

const firstStartIn = (place: string) =>
  `This is the first start: an organization and its administrator were created in ${place}.`;

function welcome(place: string, url: string, first: FirstTokens): string {
  const { token } = first;
  return `
${firstStartIn(place)}
The administrator's access token, valid for 30 days, is shown only once:

  ${token}

Sign in with this link in a browser, once and within 15 minutes ("chartroom member sign-in" prints another):

  ${signInAddress(url, first)}

Create a project with the token:

  curl ${url}/api/service.v1.ProjectService/CreateProject \\
    -H 'Authorization: Bearer ${token}' \\
    -H 'Content-Type: application/json' \\
    -d '{"initializer": {"specs": [{"git": {"remoteUri": "https://git.example.org/team/hello.git"}}]}}'

`;
}
