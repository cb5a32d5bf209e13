import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { SecurityPolicy_Effect as Effect, type SecurityPolicy } from "#gen/service/v1/security_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../../api/pages.ts";
import { queries } from "../../../api/server.tsx";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { DataTable } from "../../../parts/DataTable.tsx";
import { DialogButton } from "../../../parts/DialogButton.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { Ago } from "../../../parts/Time.tsx";
import type { PartProps } from "../Organization.tsx";
import { SecurityPolicyForm } from "./SecurityPolicyForm.tsx";

/** Shows the security policies: which programs may start in environments, and the policy of new environments. */
export function SecurityPolicies({ organizationId, isAdministrator }: PartProps) {
  const policies = useInfiniteQuery(SecurityService.method.listSecurityPolicies, FIRST_PAGE, BY_PAGE);
  const organization = useQuery(OrganizationService.method.getOrganizationPolicies, { organizationId });
  const assignedId = organization.data?.policies?.securityPolicyId ?? "";
  const onSettled = () => void queries.invalidateQueries();
  const remove = useMutation(SecurityService.method.deleteSecurityPolicy, { onSettled });
  const assign = useMutation(OrganizationService.method.updateOrganizationPolicies, { onSettled });
  return (
    <Section
      title="Security policies"
      more={
        isAdministrator && (
          <DialogButton label="Create security policy" size={640}>
            {(close) => (
              <SecurityPolicyForm organizationId={organizationId} policy={undefined} onDone={close} />
            )}
          </DialogButton>
        )
      }
    >
      <p className="dim lead">
        A security policy says which programs are blocked, or audited, when environments start them. At most
        one is assigned at a time: new environments get it, and existing ones keep theirs.
      </p>
      <Problem error={organization.error ?? remove.error ?? assign.error} />
      <Loaded reading={policies}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.securityPolicies);
          if (rows.length === 0) {
            return (
              <Empty title="There are no security policies yet.">
                <p>Administrators create a policy, review it, and then assign it to new environments.</p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Security policies"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(policies)}
              columns={[
                { head: "Name", cell: ({ metadata }) => <strong>{metadata?.name}</strong> },
                { head: "Programs", cell: programsOf },
                {
                  head: "Assigned to",
                  cell: ({ id }) =>
                    id === assignedId ? "new environments" : <span className="dim">not assigned</span>,
                },
                { head: "Changed", cell: ({ updatedAt }) => <Ago at={updatedAt} />, isExtra: true },
                ...(isAdministrator
                  ? [
                      {
                        head: "Action",
                        cell: (policy: SecurityPolicy) => (
                          <div className="row-actions">
                            <DialogButton label="Change" size={640} isMain={false}>
                              {(close) => (
                                <SecurityPolicyForm
                                  organizationId={organizationId}
                                  policy={policy}
                                  onDone={close}
                                />
                              )}
                            </DialogButton>
                            <ConfirmButton
                              label={policy.id === assignedId ? "Unassign" : "Assign"}
                              question={
                                policy.id === assignedId
                                  ? "Environments that are created from now on have no security policy."
                                  : `Environments that are created from now on have ${policy.metadata?.name}${assignedId === "" ? "" : ", instead of the one assigned now"}. Their runners must be able to enforce it.`
                              }
                              onConfirm={() =>
                                assign.mutate({
                                  organizationId,
                                  securityPolicyId: policy.id === assignedId ? "" : policy.id,
                                })
                              }
                              isBusy={assign.isPending}
                            />
                            <ConfirmButton
                              label="Delete"
                              question={`Deletes ${policy.metadata?.name}. You cannot delete a policy that is assigned or that applies to an environment.`}
                              onConfirm={() => remove.mutate({ securityPolicyId: policy.id })}
                              isBusy={remove.isPending && remove.variables.securityPolicyId === policy.id}
                            />
                          </div>
                        ),
                      },
                    ]
                  : []),
              ]}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}

/** Returns how many programs a policy blocks and logs, and what cannot be enforced. */
function programsOf({ spec }: SecurityPolicy) {
  const rules = spec?.executables?.rules ?? [];
  const count = (effect: Effect) => rules.filter((rule) => rule.effect === effect).length;
  const others = rules.length - count(Effect.BLOCK) - count(Effect.AUDIT);
  const isUnkept =
    others > 0 || spec?.ports !== undefined || (spec?.executables?.defaultEffect ?? 0) > Effect.ALLOW;
  return (
    <>
      {rules.length === 0 ? "none" : `${count(Effect.BLOCK)} blocked, ${count(Effect.AUDIT)} audited`}
      {isUnkept && <span className="dim"> (no runner can enforce it, so it cannot be assigned)</span>}
    </>
  );
}
