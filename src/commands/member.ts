import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import type { Config } from "../config.ts";
import { accountOf } from "../services/found-organization.ts";
import { joinOrganization } from "../services/membership.ts";
import { createPersonalToken } from "../services/personal-token.ts";
import { OPERATOR, type WriteTransaction } from "../store/store.ts";
import { openExistingData, toStartError } from "./open-data.ts";
import { organizationNamed } from "./organization.ts";
import { checkPerson } from "./person.ts";
import { StartError } from "./start-error.ts";

export interface MemberOptions {
  /** Id or name. */
  readonly organization: string;
  readonly email: string;
  readonly name: string;
  readonly role: "administrator" | "member";
}

/**
 * Makes a person a member of an organization as the operator, with an account
 * where there is none, and a first token. It works beside a running server.
 *
 * @returns the token's value, which is stored nowhere
 * @throws StartError when no organization fits, or the account is blocked or a member already
 */
export async function addMember(
  config: Pick<Config, "dataDir" | "keyFile">,
  { organization: named, email, name, role }: MemberOptions,
): Promise<string> {
  checkPerson(email, name);
  const { store, keys } = await openExistingData(config);
  try {
    const organization = await organizationNamed(store, named);
    const scope = { organizationId: organization.id };
    const join = async (tx: WriteTransaction) => {
      const accountId = await accountOf(tx, email, name);
      const number = role === "administrator" ? OrganizationRole.ADMIN : OrganizationRole.MEMBER;
      const member = await joinOrganization(tx, scope, accountId, number);
      if (!member) throw new StartError(`${email} is a member of ${organization.name} already`);
      return createPersonalToken(tx, scope, keys, {
        userId: member.id,
        description: "first token",
        validForMs: 0,
        readOnly: false,
      });
    };
    const token = await store.write(OPERATOR, "chartroom member add", join).catch(toStartError);
    return `${token}\n`;
  } finally {
    await store.close();
  }
}
