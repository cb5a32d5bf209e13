import { useSearch } from "@tanstack/react-router";
import { usePerson } from "../../api/person.tsx";
import { Page, TabLinks } from "../../parts/Page.tsx";
import { AuditLog } from "./AuditLog.tsx";
import { AgentList } from "./agents/AgentList.tsx";
import { Events } from "./Events.tsx";
import { Groups } from "./Groups.tsx";
import { ServerHealth } from "./health/ServerHealth.tsx";
import { Invites } from "./Invites.tsx";
import { Members } from "./Members.tsx";
import { useOwnRole } from "./own-role.ts";
import { Policies } from "./policies/Policies.tsx";
import { Secrets } from "./Secrets.tsx";
import { ServiceAccounts } from "./ServiceAccounts.tsx";
import { SecurityPolicies } from "./security/SecurityPolicies.tsx";
import { Webhooks } from "./webhooks/Webhooks.tsx";

const TABS = [
  ["members", "Members"],
  ["groups", "Groups"],
  ["invites", "Invites"],
  ["accounts", "Service accounts"],
  ["policies", "Policies"],
  ["security", "Security policies"],
  ["secrets", "Secrets"],
  ["agents", "Agents"],
  ["webhooks", "Webhooks"],
  ["audit", "Audit log"],
  ["events", "Events"],
  ["server", "Server health"],
] as const;

/** What each part of the page knows about the person who looks at it. */
export interface PartProps {
  readonly organizationId: string;
  /** False until it is known. */
  readonly isAdministrator: boolean;
}

const PARTS: Readonly<Record<string, (props: PartProps) => React.ReactNode>> = {
  members: (props) => <Members {...props} />,
  groups: (props) => <Groups {...props} />,
  invites: (props) => <Invites {...props} />,
  accounts: (props) => <ServiceAccounts {...props} />,
  policies: (props) => <Policies {...props} />,
  security: (props) => <SecurityPolicies {...props} />,
  secrets: (props) => <Secrets {...props} />,
  agents: (props) => <AgentList {...props} />,
  webhooks: (props) => <Webhooks {...props} />,
  audit: (props) => <AuditLog {...props} />,
  events: () => <Events />,
  server: (props) => <ServerHealth {...props} />,
};

/** Shows the organization: its members, its policies, its record, and the health of its server. */
export function Organization() {
  const { tab = "members" } = useSearch({ from: "/organization" });
  const { user, organization } = usePerson();
  const organizationId = user?.organizationId ?? "";
  const role = useOwnRole(organizationId, user?.id ?? "");
  const part = PARTS[tab] ?? PARTS.members;
  return (
    <Page
      title="Organization"
      facts={
        <>
          <span>{organization?.name}</span>
          {role === "member" && <span>Only administrators can change these settings.</span>}
        </>
      }
    >
      <TabLinks current={tab} tabs={TABS} />
      {organizationId !== "" && part?.({ organizationId, isAdministrator: role === "administrator" })}
    </Page>
  );
}
