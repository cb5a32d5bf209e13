import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { CreateToken } from "../tokens/CreateToken.tsx";
import { TokenTable } from "../tokens/TokenTable.tsx";

/** Shows the person's own access tokens, for programs and the command line. */
export function Tokens({ userId }: { readonly userId: string }) {
  const tokens = useInfiniteQuery(
    UserService.method.listPersonalAccessTokens,
    { ...FIRST_PAGE, filter: { userIds: [userId] } },
    BY_PAGE,
  );
  const remove = useMutation(UserService.method.deletePersonalAccessToken, {
    onSettled: () => void tokens.refetch(),
  });
  const create = useMutation(UserService.method.createPersonalAccessToken, { gcTime: 0 });
  return (
    <Section
      title="Access tokens"
      more={
        <DialogButton label="Create token" size={560}>
          {(close) => (
            <CreateToken
              offersReadOnly
              onClose={close}
              onCreate={async (order) => {
                const { token } = await create.mutateAsync(order);
                create.reset();
                void tokens.refetch();
                return token;
              }}
            />
          )}
        </DialogButton>
      }
    >
      <Problem error={remove.error} />
      <Loaded reading={tokens}>
        {({ pages }) => {
          const rows = pages.flatMap(({ personalAccessTokens }) => personalAccessTokens);
          if (rows.length === 0) {
            return (
              <Empty title="You have no access tokens.">
                <p>Programs and the command line use a token to call the server with your permissions.</p>
              </Empty>
            );
          }
          return (
            <TokenTable
              label="Access tokens"
              rows={rows}
              {...moreOf(tokens)}
              question="Programs that use this token lose access at once, and sessions that began with it end."
              onDelete={(personalAccessTokenId) => remove.mutate({ personalAccessTokenId })}
              busyId={remove.isPending ? remove.variables.personalAccessTokenId : undefined}
              onRenewed={() => void tokens.refetch()}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}
