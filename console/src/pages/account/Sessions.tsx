import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { useSignOut } from "../../api/sign-out.ts";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { Ago } from "../../parts/Time.tsx";

/** Lists the browsers in which the person is signed in, and signs them out. */
export function Sessions() {
  // A user has at most 25.
  const sessions = useQuery(UserService.method.listSessions, { pagination: { pageSize: 100 } });
  const revoke = useMutation(UserService.method.revokeSession, { onSettled: () => sessions.refetch() });
  const signOut = useSignOut();
  const count = sessions.data?.sessions.length ?? 0;
  return (
    <Section
      title="Sessions"
      count={count}
      more={
        <ConfirmButton
          label="Sign out everywhere"
          question={`Ends ${count} ${count === 1 ? "session" : "sessions"}, this one too. You can sign in again with an access token or a link.`}
          onConfirm={() => signOut.mutate({ everywhere: true })}
          isBusy={signOut.isPending}
        />
      }
    >
      <Problem error={revoke.error ?? signOut.error} />
      <Loaded reading={sessions}>
        {({ sessions }) => (
          <DataTable
            label="Sessions"
            isStacked
            rows={sessions}
            keyOf={({ id }) => id}
            columns={[
              {
                head: "Session",
                cell: ({ current, readOnly }) => (
                  <>
                    {current ? <strong>This browser</strong> : "Another browser"}
                    {readOnly && <span className="dim"> (read-only)</span>}
                  </>
                ),
              },
              { head: "Signed in", cell: ({ createdAt }) => <Ago at={createdAt} /> },
              { head: "Last used", cell: ({ lastUsed }) => <Ago at={lastUsed} />, isExtra: true },
              { head: "Expires", cell: ({ expiresAt }) => <Ago at={expiresAt} />, isExtra: true },
              {
                head: "Action",
                cell: ({ id, current }) =>
                  current ? (
                    <Button variant="default" size="xs" onClick={() => signOut.mutate({})}>
                      Sign out
                    </Button>
                  ) : (
                    <Button
                      variant="default"
                      size="xs"
                      onClick={() => revoke.mutate({ sessionId: id })}
                      loading={revoke.isPending && revoke.variables.sessionId === id}
                    >
                      End session
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}
