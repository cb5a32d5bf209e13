import { expect } from "@jest/globals";
import { post } from "../../harness/call.ts";
import { type FakeRunner, type Leased, registerRunner, succeeded } from "../../harness/fake-runner.ts";
import { addMember } from "../../harness/member.ts";
import { onCluster } from "../../harness/postgres-store.ts";
import { runCommand, type TestServer } from "../../harness/server.ts";
import { startExecution } from "../../harness/started-execution.ts";
import { until } from "../../harness/until.ts";
import {
  addWorkflow,
  deliver,
  executionsOf,
  IN_HALF_A_DAY,
  ledgerOf,
  MANUAL,
  OVER_REPOSITORY,
} from "../../harness/webhook.ts";
import { GITHUB_PULL_REQUEST, openedPullRequest } from "../../harness/webhook-payload.ts";
import { hubSignature } from "../../harness/webhook-signing.ts";
import { outcomeOf, type Place, type Rule, times } from "./trial.ts";

const verdictOf = ({ verdict }: { readonly verdict: string }) => verdict.replace("TRIGGER_VERDICT_", "");

/** A runner with an execution whose actions wait for it. */
async function runnerAndExecution({ server }: Place, actions: number, maxParallel: number) {
  const runner = await registerRunner(server);
  const { environmentClassId } = runner;
  const execution = await startExecution(server, { actions, maxParallel, environmentClassId });
  return { runner, executionId: execution.executionId };
}

/** Ends a lease with a failure, at one of the servers. */
const fail = (at: TestServer, { token }: FakeRunner, { leaseId, fence }: Leased) =>
  post(at, "WorkService/FinishWork", { leaseId, fence, outcome: "OUTCOME_FAILED" }, token).then(outcomeOf);

/** Rules of workflows and of work on runners. */
export const WORK_RULES: readonly Rule[] = [
  [
    "of several that resume the same agent run, one does",
    async ({ server, organizationId, token, call }) => {
      const owner = ["--organization", organizationId, "--default", "--data-dir", server.dataDir];
      const added = await runCommand(["agent", "add", "coder", "--command", "cat", ...owner]);
      expect([added.code, added.stderr]).toEqual([0, ""]);
      const { agentExecutionId: resumeFrom } = (await call("AgentService/StartAgent")).body;
      await call("AgentService/StopAgentExecution", { agentExecutionId: resumeFrom });
      return {
        calls: times(6, (at: TestServer) =>
          post(at, "AgentService/StartAgent", { resumeFrom }, token).then(outcomeOf),
        ),
        outcomes: ["done", ...times(5, "PHASE_UNSUITABLE")],
      };
    },
  ],
  [
    "of a hundred that lease the same work, one gets it",
    async (place) => {
      const { runner } = await runnerAndExecution(place, 1, 1);
      return {
        calls: times(100, async (at: TestServer) => {
          const { works } = await succeeded(
            post(at, "WorkService/LeaseWork", { maxLeases: 1, wait: "0s" }, runner.token),
          );
          return works.length === 1 ? "leased" : "nothing";
        }),
        outcomes: ["leased", ...times(99, "nothing")],
      };
    },
  ],
  [
    "an approval has one outcome, by as many people as must, and its action goes on once",
    async (place) => {
      const { server, organizationId, url } = place;
      const people = [];
      for (const name of ["ann", "ben", "eve"])
        people.push(
          await addMember(server, { organizationId, email: `${name}-${organizationId}@example.org` }),
        );
      const userIds = people.map(({ userId }) => userId);
      const deciders = { who: "WHO_USERS", userIds, required: 2 };
      const steps = [{ approval: { message: "Go on?", deciders } }, { task: { command: "true" } }];
      await startExecution(server, { steps });
      const { approvals } = await succeeded(place.call("ApprovalService/ListApprovals"));
      const [{ id: approvalId, digest }] = approvals;
      const decision = { approvalId, digest, decision: "DECISION_APPROVE" };
      return {
        calls: times(10, people)
          .flat()
          .map(
            ({ token }) =>
              (at: TestServer) =>
                post(at, "ApprovalService/DecideApproval", decision, token).then(outcomeOf),
          ),
        outcomes: ["done", "done", ...times(28, "PHASE_UNSUITABLE")],
        async after() {
          const { approval } = await succeeded(place.call("ApprovalService/GetApproval", { approvalId }));
          expect(approval.state).toBe("APPROVAL_STATE_APPROVED");
          expect(new Set(approval.decisions.map(({ by }: { by: { id: string } }) => by.id)).size).toBe(2);
          const works = `select from work where organization_id = '${organizationId}'`;
          expect((await onCluster(url, works)).rowCount).toBe(1);
        },
      };
    },
  ],
  [
    "an execution has as many actions on runners as its workflow says, however they end",
    async (place) => {
      const { runner, executionId } = await runnerAndExecution(place, 9, 3);
      const works = await runner.lease({ maxLeases: 9 });
      expect(works).toHaveLength(3);
      return {
        calls: works.map((work) => (at: TestServer) => fail(at, runner, work)),
        outcomes: times(3, "done"),
        async after() {
          const { rows } = await onCluster(
            place.url,
            `select failed_count::int as failed, (
                select count(*)::int from workflow_action where execution_id = e.id and queued = 1
              ) as queued from workflow_execution e where id = '${executionId}'`,
          );
          expect(rows).toEqual([{ failed: 3, queued: 3 }]);
        },
      };
    },
  ],
  [
    "of several that end the same lease, one does",
    async (place) => {
      const { url } = place;
      const { runner, executionId } = await runnerAndExecution(place, 1, 1);
      const work = await runner.leaseOne();
      return {
        calls: times(6, (at: TestServer) => fail(at, runner, work)),
        outcomes: ["done", ...times(5, "LEASE_LOST")],
        async after() {
          const { rowCount } = await onCluster(url, `select from work where group_id = '${executionId}'`);
          expect(rowCount).toBe(0);
        },
      };
    },
  ],
  [
    "a trigger that may not overlap starts one execution",
    async ({ url, server, token }) => {
      const time = { cronExpression: IN_HALF_A_DAY, overlapPolicy: "OVERLAP_POLICY_SKIP" };
      const { id } = await addWorkflow(server, { triggers: [{ time, context: OVER_REPOSITORY }] });
      await onCluster(url, `update workflow_schedule set next_at = 0 where workflow_id = '${id}'`);
      const [execution] = await until(
        () => executionsOf(server, id),
        ({ length }) => length === 1,
      );
      const [event] = await ledgerOf(server, id);
      const named = { workflowExecutionId: execution.id };
      await succeeded(post(server, "WorkflowService/CancelWorkflowExecution", named));
      await until(
        () => executionsOf(server, id),
        ([found]) => found.metadata.finishedAt !== undefined,
      );
      const name = "WorkflowService/RedeliverWorkflowTriggerEvent";
      return {
        calls: times(9, async (at: TestServer) => {
          const { triggerEvents } = await succeeded(post(at, name, { triggerEventId: event.id }, token));
          return triggerEvents.map(verdictOf).join();
        }),
        outcomes: ["STARTED", ...times(8, "OVERLAP")],
        after: async () => expect(await executionsOf(server, id)).toHaveLength(2),
      };
    },
  ],
  [
    "an event of a pull request starts its workflow once, however often it is delivered",
    async ({ server }) => {
      const { id, secret } = await addWorkflow(server, {
        triggers: [{ pullRequest: {}, context: { fromTrigger: {} } }],
      });
      return {
        calls: Array.from({ length: 9 }, (_, index) => async (at: TestServer) => {
          const title = `attempt ${index}`;
          const body = Buffer.from(JSON.stringify(openedPullRequest({ "pull_request.title": title })));
          const headers = { ...GITHUB_PULL_REQUEST, ...hubSignature(secret, body) };
          const answer = await deliver(at, id, body, headers);
          return answer.body.verdicts.map(verdictOf).join();
        }),
        outcomes: ["STARTED", ...times(8, "DUPLICATE")],
        after: async () => expect(await executionsOf(server, id)).toHaveLength(1),
      };
    },
  ],
  [
    "copies of a request under one key start one execution",
    async ({ server, token }) => {
      const { id } = await addWorkflow(server, { triggers: [MANUAL] });
      const ids = new Set<string>();
      return {
        calls: times(12, async (at: TestServer) => {
          const key = { "idempotency-key": "start" };
          const answer = await post(at, "WorkflowService/StartWorkflow", { workflowId: id }, token, key);
          ids.add(answer.body.workflowExecution.id);
          return answer.header.get("idempotency-replayed") === "true" ? "replayed" : "started";
        }),
        outcomes: ["started", ...times(11, "replayed")],
        async after() {
          expect(await executionsOf(server, id)).toMatchObject([...ids].map((only) => ({ id: only })));
        },
      };
    },
  ],
];
