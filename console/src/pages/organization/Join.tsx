import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { useSwitch } from "../../api/organizations.ts";
import { usePerson } from "../../api/person.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Page } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";

/** The page that an invite's link opens. The secret is the part after the #, which browsers do not send to servers. */
export function Join() {
  const [inviteId] = useState(() => location.hash.slice(1));
  const summary = useQuery(
    OrganizationService.method.getOrganizationInviteSummary,
    { inviteId },
    // The secret is part of the query's key, so it is removed with the page.
    { enabled: inviteId !== "", refetchInterval: false, retry: false, gcTime: 0 },
  );
  const join = useMutation(OrganizationService.method.joinOrganization, { gcTime: 0 });
  const change = useSwitch();
  const { user } = usePerson();
  return (
    <Page title="Join an organization">
      {inviteId === "" ? (
        <Empty title="This link is incomplete.">
          <p>An invite link has more text after the # sign. Ask the person who sent it for the whole link.</p>
        </Empty>
      ) : (
        <Loaded reading={summary}>
          {({ organizationId, organizationName }) => (
            <div className="card">
              <p>
                You are invited to <strong>{organizationName}</strong>.
              </p>
              <Problem error={join.error ?? change.error} />
              {user?.organizationId === organizationId ? (
                <>
                  <p role="status">You are already a member of {organizationName}.</p>
                  <p>
                    <Link to="/">Go to Home</Link>
                  </p>
                </>
              ) : join.isSuccess ? (
                <>
                  <p role="status">You have joined. This session stays in its own organization.</p>
                  <div className="row">
                    <Button loading={change.isPending} onClick={() => change.mutate(organizationId)}>
                      Switch to {organizationName}
                    </Button>
                  </div>
                </>
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
