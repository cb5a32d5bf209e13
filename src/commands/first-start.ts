import { writeFile } from "node:fs/promises";
import type { Keys } from "../keys.ts";
import {
  createFirstOrganization,
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

/** Makes the first organization; undefined where there was one. */
export async function firstTokens(
  store: Store,
  keys: Keys,
  organizationName = "My organization",
): Promise<FirstTokens | undefined> {
  const first = await createFirstOrganization(store, keys, {
    operation: "chartroom serve",
    organizationName,
    accountName: "Administrator",
    email: "admin@localhost",
    tokenDescription: "first start",
  });
  if (!first) return undefined;
  const { organizationId, token, userId } = first;
  return {
    organizationId,
    token,
    link: await createSignInLinkAsOperator(store, keys, userId, "chartroom serve"),
  };
}

/** Is printed where the last organization was removed. */
export const NO_ORGANIZATION = `
There is no organization any more: make one with "chartroom organization create".

`;

/** Writes the first token to the file of the settings, or has it printed. @returns what is printed */
export async function tellFirstTokens(file: string, url: string, first: FirstTokens): Promise<string> {
  if (file === "") return welcome(url, first);
  await writeFile(file, `${first.token}\n`, { mode: 0o600, flag: "wx" }).catch((error) => {
    throw new StartError(
      `--first-token-file ${file} cannot be written (${error.message}): start again without it, and make a token with chartroom token create`,
    );
  });
  return `
This is the first start: an organization and its administrator were made.
The administrator's access token, valid for 30 days, is in ${file}.

`;
}

function welcome(url: string, { token, link }: FirstTokens): string {
  return `
This is the first start: an organization and its administrator were made.
The administrator's access token, valid for 30 days, is shown this once:

  ${token}

Sign in with a browser by this link, once and within 15 minutes ("chartroom member sign-in" prints another):

  ${url}/sign-in#${link}

Store a project with the token:

  curl ${url}/api/service.v1.ProjectService/CreateProject \\
    -H 'Authorization: Bearer ${token}' \\
    -H 'Content-Type: application/json' \\
    -d '{"initializer": {"specs": [{"git": {"remoteUri": "https://git.example.org/team/hello.git"}}]}}'

`;
}
