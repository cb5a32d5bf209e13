import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useState } from "react";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";

/** What an invite's link opens. Its secret stands behind the #, which browsers send to no server. */
export function Join() {
  const [inviteId] = useState(() => location.hash.slice(1));
  const summary = useQuery(
    OrganizationService.method.getOrganizationInviteSummary,
    { inviteId },
    // The secret is part of the query's key: it goes with the page.
    { enabled: inviteId !== "", refetchInterval: false, retry: false, gcTime: 0 },
  );
  const join = useMutation(OrganizationService.method.joinOrganization, { gcTime: 0 });
  return (
    <Page title="Join an organization">
      {inviteId === "" ? (
        <Empty title="This link is not whole.">
          <p>An invite’s link goes on after the sign #. Ask whoever sent it for all of it.</p>
        </Empty>
      ) : (
        <Loaded reading={summary}>
          {({ organizationName }) => (
            <div className="card">
              <p>
                You are invited to <strong>{organizationName}</strong>.
              </p>
              <Problem error={join.error} />
              {join.isSuccess ? (
                <p role="status">
                  You have joined. This session goes on in its own organization. To work in {organizationName}
                  , sign in to it: with its sign-in provider, or with a link that whoever runs this server
                  makes for you.
                </p>
              ) : (
                <div className="row">
                  <Button
                    loading={join.isPending}
                    onClick={() => join.mutate({ joinId: { case: "inviteId", value: inviteId } })}
                  >
                    Join organization
                  </Button>
                </div>
              )}
            </div>
          )}
        </Loaded>
      )}
    </Page>
  );
}
