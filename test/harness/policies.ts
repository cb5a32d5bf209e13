import { type Answer, post } from "./call.ts";
import { addMember } from "./member.ts";
import { addOrganization } from "./organization.ts";
import type { TestServer } from "./server.ts";

/** One organization with an administrator and a member, beside others on the server. */
export async function organizationWithPolicies(server: TestServer, name: string) {
  const administrator = await addOrganization(server, name);
  const { organizationId } = administrator;
  const member = await addMember(server, { organizationId, email: `member-of-${name}@example.org` });
  const call = (operation: string, body: object, token = administrator.token) =>
    post(server, operation, body, token);
  const policies = async (): Promise<Answer["body"]> => {
    const { status, body } = await call("OrganizationService/GetOrganizationPolicies", { organizationId });
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body.policies;
  };
  return {
    organizationId,
    administrator,
    member,
    /** Calls as the administrator, unless another token is given. */
    call,
    /** Asks to set policies. */
    update: (policies: object, token = administrator.token) =>
      call("OrganizationService/UpdateOrganizationPolicies", { organizationId, ...policies }, token),
    /** Sets policies; fails when they are refused. */
    async set(policies: object): Promise<void> {
      const request = { organizationId, ...policies };
      const { status, body } = await call("OrganizationService/UpdateOrganizationPolicies", request);
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    /** The policies in force. */
    policies,
  };
}

export type OrganizationWithPolicies = Awaited<ReturnType<typeof organizationWithPolicies>>;

/** The PolicyDecision in an error; undefined when it has none. */
export function decisionOf(answer: Answer): Answer["body"] {
  return answer.body?.details?.find(({ type }: { type: string }) => type === "service.v1.PolicyDecision")
    ?.debug;
}
