import { type Answer, post } from "./call.ts";
import { succeeded } from "./fake-runner.ts";
import type { ReachableServer } from "./server.ts";
import { until } from "./until.ts";

type Body = Answer["body"];
type ServerEndpoint = Pick<ReachableServer, "url" | "token">;

/** Returns the organization's approvals in these states; all without any. */
export const approvals = async (server: ServerEndpoint, ...states: string[]): Promise<Body[]> =>
  (await succeeded(post(server, "ApprovalService/ListApprovals", { filter: { states } }))).approvals;

/** Decides an approval, which is approved unless `more` says otherwise. */
export const decide = (server: ServerEndpoint, { id, digest }: Body, more: object = {}): Promise<Body> =>
  succeeded(
    post(server, "ApprovalService/DecideApproval", {
      ...{ approvalId: id, digest, decision: "DECISION_APPROVE" },
      ...more,
    }),
  );

/** Returns the approval that waits, once there is exactly one. */
export async function onlyPending(server: ServerEndpoint): Promise<Body> {
  const [approval] = await until(
    () => approvals(server, "APPROVAL_STATE_PENDING"),
    (all) => all.length === 1,
  );
  return approval;
}
