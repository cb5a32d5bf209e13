import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { Fragment, useMemo, useState } from "react";
import {
  type AgentExecution,
  type AgentOutputBlock,
  type AgentOutputBlock_Usage,
  AgentExecution_Phase as Phase,
  AgentInputReceipt as Receipt,
} from "#gen/service/v1/agent_pb.js";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { Details } from "../../../parts/Details.tsx";
import { Icon } from "../../../parts/Icon.tsx";
import { Empty } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State } from "../../../parts/State.tsx";
import { ApprovalCard } from "../../approvals/ApprovalCard.tsx";
import { approvalState, approvalTitle } from "../../approvals/approval-state.ts";
import { Block, isRunning, Said, StepState } from "./Block.tsx";
import { Composer } from "./Composer.tsx";
import { GoalView } from "./GoalView.tsx";
import { type Item, itemsOf, type Step, sizeOf } from "./items.ts";
import { LostTurn } from "./LostTurn.tsx";
import { PlanView } from "./PlanView.tsx";
import { Queue } from "./Queue.tsx";
import { SubagentTree } from "./SubagentTree.tsx";
import { useApprovals } from "./use-approvals.ts";
import { useFollowedEnd } from "./use-followed-end.ts";
import type { Inputs } from "./use-run.ts";

/** Items that are rendered at once; earlier ones are rendered on request. */
const DRAWN = 150;

const NOTHING_ASKED: readonly string[] = [];

const countOf = (items: readonly Item[]): number => items.reduce((sum, item) => sum + sizeOf(item), 0);

interface ConversationViewProps {
  readonly run: AgentExecution;
  readonly blocks: readonly AgentOutputBlock[];
  readonly inputs: UseQueryResult<Inputs>;
  readonly isStopped: boolean;
}

/**
 * Shows the conversation with a run: the messages, what the agent did, what it asks, and the field for the next
 * message.
 */
export function ConversationView({ run, blocks, inputs, isStopped }: ConversationViewProps) {
  const [drawn, setDrawn] = useState(DRAWN);
  const all = inputs.data?.inputs;
  const asked = run.status?.pendingApprovalIds ?? NOTHING_ASKED;
  const { approvals, error } = useApprovals(run.id, asked);
  const items = useMemo(() => itemsOf(all ?? [], blocks, approvals), [all, blocks, approvals]);
  const shown = items.slice(-drawn);
  const before = items.slice(0, -drawn);
  // Pending decisions are visible, however long ago they were requested.
  const waiting = before.filter(
    (item) => item.kind === "approval" && item.approval.state === ApprovalState.PENDING,
  );
  const [hidden, total] = [countOf(before), countOf(items)];
  const queue = (inputs.data?.queue ?? []).filter(({ receipt }) => receipt === Receipt.QUEUED);
  const plan = blocks.findLast(({ block }) => block.case === "plan")?.block;
  const usage = blocks.findLast(({ block }) => block.case === "usage")?.block;
  const { content, firstNew, newCount, toEnd } = useFollowedEnd(total);
  const isWorking = run.status?.phase === Phase.RUNNING && asked.length === 0;
  const subagents = run.status?.subagents ?? [];
  const hasSide = plan?.case === "plan" || subagents.length > 0;
  return (
    <div className={hasSide ? "talk with-plan" : "talk"}>
      <div className="talk-main" ref={content}>
        <Problem error={inputs.error ?? error} onRetry={() => void inputs.refetch()} />
        <GoalView run={run} />
        <div className="talk-items" role="log" aria-label="Conversation">
          {items.length > shown.length && (
            <Button variant="default" size="xs" onClick={() => setDrawn(drawn + DRAWN)}>
              Show {Math.min(DRAWN, items.length - shown.length)} earlier
            </Button>
          )}
          <Items items={shown} from={hidden} firstNew={firstNew} isStopped={isStopped} />
          {items.length === 0 && !isWorking && asked.length === 0 && (
            <Empty title="No messages yet.">
              <p>{isStopped ? "The run ended before it started." : "Send the agent a message below."}</p>
            </Empty>
          )}
          {isWorking && (
            <p className="dim working">
              <Icon name="running" /> The agent works.
            </p>
          )}
        </div>
        {waiting.map((item) => (
          <ItemView key={item.key} item={item} isStopped={isStopped} />
        ))}
        <div className="talk-foot">
          {newCount > 0 && (
            <Button
              className="news"
              size="compact-xs"
              onClick={toEnd}
              rightSection={<Icon name="down" size={12} />}
            >
              {newCount.toLocaleString()} new
            </Button>
          )}
          <LostTurn run={run} revision={inputs.data?.queueRevision ?? 0n} />
          <Queue runId={run.id} queue={queue} revision={inputs.data?.queueRevision ?? 0n} />
          <Composer runId={run.id} isStopped={isStopped} />
          {usage?.case === "usage" && <UsageLine usage={usage.value} />}
        </div>
      </div>
      {hasSide && (
        <div className="talk-side">
          {plan?.case === "plan" && <PlanView plan={plan.value} />}
          {subagents.length > 0 && <SubagentTree runId={run.id} subagents={subagents} />}
        </div>
      )}
    </div>
  );
}

function ItemView({ item, isStopped }: { readonly item: Item; readonly isStopped: boolean }) {
  if (item.kind === "input") return <Said input={item.input} />;
  if (item.kind !== "steps") return <StepView step={item} isStopped={isStopped} />;
  const now = item.steps.findLast((step) => step.kind === "block" && isRunning(step.block));
  return (
    <Details
      className="steps"
      summary={
        <>
          <Icon name="right" />
          {item.steps.length} steps
          {now?.kind === "block" && !isStopped && (
            <StepState block={now.block} isStopped={isStopped} isNamed />
          )}
        </>
      }
    >
      {item.steps.map((step) => (
        <StepView key={step.key} step={step} isStopped={isStopped} />
      ))}
    </Details>
  );
}

function StepView({ step, isStopped }: { readonly step: Step; readonly isStopped: boolean }) {
  if (step.kind === "block") return <Block block={step.block} isStopped={isStopped} />;
  const { approval } = step;
  if (approval.state === ApprovalState.PENDING) return <ApprovalCard approval={approval} isInRun />;
  const [tone, word] = approvalState(approval.state);
  return (
    <Details
      className="step"
      summary={
        <>
          <Icon name="approvals" />
          <span className="cut">Asked: {approvalTitle(approval)}</span>
          <State tone={tone} word={word} />
        </>
      }
    >
      <div className="step-body">
        <ApprovalCard approval={approval} isInRun />
      </div>
    </Details>
  );
}

/** Renders the items, with a line before the first one that arrived after the person scrolled up. */
function Items({
  items,
  from,
  firstNew,
  isStopped,
}: {
  readonly items: readonly Item[];
  /** The number of items before them. */
  readonly from: number;
  readonly firstNew: number | undefined;
  readonly isStopped: boolean;
}) {
  let end = from;
  let isMarked = firstNew === undefined || firstNew < from;
  return items.map((item) => {
    end += sizeOf(item);
    const isFirstNew = !isMarked && firstNew !== undefined && end > firstNew;
    isMarked ||= isFirstNew;
    return (
      <Fragment key={item.key}>
        {isFirstNew && (
          <div className="new-line small">
            <span>New</span>
          </div>
        )}
        <ItemView item={item} isStopped={isStopped} />
      </Fragment>
    );
  });
}

function UsageLine({ usage }: { readonly usage: AgentOutputBlock_Usage }) {
  const { inputTokens, outputTokens, cost } = usage;
  return (
    <p className="dim small figures">
      {inputTokens.toLocaleString()} tokens read, {outputTokens.toLocaleString()} written
      {cost && `, ${cost.amount.toFixed(2)} ${cost.currency}`}
    </p>
  );
}
