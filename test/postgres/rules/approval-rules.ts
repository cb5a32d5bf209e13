import { expect } from "@jest/globals";
import { AgentForm } from "#gen/runner/v1/work_pb.js";
import { registerAgent } from "../../../src/services/agent/agent-registry.ts";
import { approvals, onlyPending } from "../../harness/approvals.ts";
import { post } from "../../harness/call.ts";
import { registerRunner, succeeded } from "../../harness/fake-runner.ts";
import { startLeasedAgentExecution } from "../../harness/leased-agent-execution.ts";
import { withServerData } from "../../harness/member.ts";
import type { TestServer } from "../../harness/server.ts";
import { outcomeOf, type Place, type Rule, times } from "./trial.ts";

/** An agent run that a runner holds, and how its agent asks for a command. */
async function askingRun({ server, organizationId, token }: Place) {
  const runner = await registerRunner(server);
  await withServerData(server, (store) =>
    registerAgent(store, {
      organizationId,
      name: "coder",
      description: "",
      command: "coder",
      form: AgentForm.JSON_LINES,
      takesSettings: false,
      isDefault: true,
    }),
  );
  const { work } = await startLeasedAgentExecution({ server, token, runner });
  const { leaseId, fence } = work;
  return (at: TestServer, toolCallId: string) => {
    const toolCall = { title: "make", kind: "TOOL_KIND_EXECUTE" };
    const request = { leaseId, fence, toolCallId, toolCall };
    return post(at, "AgentWorkService/RequestApproval", request, runner.token);
  };
}

/** Rules of approvals. */
export const APPROVAL_RULES: readonly Rule[] = [
  [
    "of a hundred decisions of an approval, one counts",
    async (place) => {
      await succeeded((await askingRun(place))(place.server, "make"));
      const { id, digest } = await onlyPending(place.server);
      const decide = (decision: string) => (at: TestServer) =>
        post(at, "ApprovalService/DecideApproval", { approvalId: id, digest, decision }, place.token).then(
          outcomeOf,
        );
      return {
        calls: [...times(50, decide("DECISION_APPROVE")), ...times(50, decide("DECISION_DENY"))],
        outcomes: ["done", ...times(99, "PHASE_UNSUITABLE")],
        async after() {
          const [approval] = await approvals(
            place.server,
            "APPROVAL_STATE_APPROVED",
            "APPROVAL_STATE_DENIED",
          );
          expect(approval).toMatchObject({ id, decisions: [{}] });
        },
      };
    },
  ],
  [
    "of several requests for the same tool call, one asks somebody",
    async (place) => {
      const ask = await askingRun(place);
      return {
        calls: times(12, async (at: TestServer) => {
          const { approval } = await succeeded(ask(at, "make"));
          return `${approval.state}`;
        }),
        outcomes: times(12, "APPROVAL_STATE_PENDING"),
        async after() {
          expect(await approvals(place.server)).toHaveLength(1);
        },
      };
    },
  ],
];
