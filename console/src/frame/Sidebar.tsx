import { useQuery } from "@connectrpc/connect-query";
import { Link, useRouterState } from "@tanstack/react-router";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { Icon, type IconName } from "../parts/Icon.tsx";

/** The pages of the sidebar, in order. */
export const PLACES = [
  ["/", "Home", "home"],
  ["/agents", "Agents", "agents"],
  ["/workflows", "Workflows", "workflows"],
  ["/projects", "Projects", "projects"],
  ["/approvals", "Approvals", "approvals"],
  ["/runners", "Runners", "runners"],
  ["/organization", "Organization", "organization"],
  ["/account", "Account", "account"],
] as const satisfies readonly (readonly [string, string, IconName])[];

/** Maximum approvals that are counted; more are shown as a plus. */
const COUNTED = 100;

/** Links to all pages, with the number of waiting approvals. */
export function Sidebar() {
  const { data } = useQuery(ApprovalService.method.listApprovals, {
    pagination: { pageSize: COUNTED },
    filter: { states: [ApprovalState.PENDING] },
  });
  const waiting = data?.approvals.length ?? 0;
  const path = useRouterState({ select: ({ location }) => location.pathname });
  // Executions have their own addresses, but belong to workflows.
  const isOf = (to: string) => to === "/workflows" && path.startsWith("/executions");
  return (
    <nav className="sidebar" aria-label="Pages">
      {PLACES.map(([to, label, icon]) => (
        <Link
          key={to}
          to={to}
          className={isOf(to) ? "place active" : "place"}
          activeOptions={{ exact: to === "/" }}
        >
          <Icon name={icon} />
          <span>{label}</span>
          {label === "Approvals" && waiting > 0 && (
            <span className="count figures">
              {waiting}
              {data?.pagination?.nextToken ? "+" : ""}
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}
