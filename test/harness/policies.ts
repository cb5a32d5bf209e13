import { type Answer, post } from "./call.ts";
import { addMember } from "./member.ts";
import { addOrganization } from "./organization.ts";
import type { ReachableServer } from "./server.ts";

/** Creates an organization with an administrator and a member on a server that has others. */
export async function organizationWithPolicies(server: ReachableServer, name: string) {
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
    /** Calls an operation as the administrator, unless another token is given. */
    call,
    /** Requests a change of policies. */
    update: (policies: object, token = administrator.token) =>
      call("OrganizationService/UpdateOrganizationPolicies", { organizationId, ...policies }, token),
    /** Sets policies and expects success. */
    async set(policies: object): Promise<void> {
      const request = { organizationId, ...policies };
      const { status, body } = await call("OrganizationService/UpdateOrganizationPolicies", request);
      if (status !== 200) throw new Error(JSON.stringify(body));
    },
    /** Returns the policies in force. */
    policies,
  };
}

export type OrganizationWithPolicies = Awaited<ReturnType<typeof organizationWithPolicies>>;

/** Returns the PolicyDecision in an error, or undefined when it has none. */
export function decisionOf(answer: Answer): Answer["body"] {
  return answer.body?.details?.find(({ type }: { type: string }) => type === "service.v1.PolicyDecision")
    ?.debug;
}
