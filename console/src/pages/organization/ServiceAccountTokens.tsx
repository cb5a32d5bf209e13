import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { CreateToken } from "../tokens/CreateToken.tsx";
import { TokenTable } from "../tokens/TokenTable.tsx";
import type { PartProps } from "./Organization.tsx";

/** Shows the tokens of one service account. */
export function ServiceAccountTokens({
  serviceAccountId,
  isAdministrator,
}: PartProps & { readonly serviceAccountId: string }) {
  const account = useQuery(ServiceAccountService.method.listServiceAccounts, {
    filter: { serviceAccountIds: [serviceAccountId], includeSuspended: true },
  });
  const tokens = useInfiniteQuery(
    ServiceAccountService.method.listServiceAccountTokens,
    { ...FIRST_PAGE, serviceAccountId },
    BY_PAGE,
  );
  const remove = useMutation(ServiceAccountService.method.deleteServiceAccountToken, {
    onSettled: () => void tokens.refetch(),
  });
  const create = useMutation(ServiceAccountService.method.createServiceAccountToken, { gcTime: 0 });
  return (
    <>
      <p className="back">
        <Link to="/organization" search={{ tab: "accounts" }}>
          All service accounts
        </Link>
      </p>
      <Section
        title={`Tokens of ${account.data?.serviceAccounts[0]?.name ?? "the service account"}`}
        more={
          isAdministrator && (
            <DialogButton label="Create token" size={560}>
              {(close) => (
                <CreateToken
                  onClose={close}
                  onCreate={async ({ description, validFor }) => {
                    const { token } = await create.mutateAsync({ serviceAccountId, description, validFor });
                    create.reset();
                    void tokens.refetch();
                    return token;
                  }}
                />
              )}
            </DialogButton>
          )
        }
      >
        <Problem error={account.error ?? remove.error} />
        <Loaded reading={tokens}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.tokens);
            if (rows.length === 0) {
              return (
                <Empty title="This service account has no tokens.">
                  <p>A program needs a token to act as this account.</p>
                </Empty>
              );
            }
            return (
              <TokenTable
                label="Tokens"
                rows={rows}
                {...moreOf(tokens)}
                question="Programs that use this token lose access at once."
                onDelete={(serviceAccountTokenId) => remove.mutate({ serviceAccountTokenId })}
                busyId={remove.isPending ? remove.variables.serviceAccountTokenId : undefined}
              />
            );
          }}
        </Loaded>
      </Section>
    </>
  );
}
