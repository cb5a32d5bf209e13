import { useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import {
  type AgentExecution,
  type AgentOutputBlock,
  type AgentOutputBlock_Usage,
  AgentExecution_Phase as Phase,
  AgentInputReceipt as Receipt,
} from "#gen/service/v1/agent_pb.js";
import { ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService } from "#gen/service/v1/approval_service_pb.js";
import { Details } from "../../../parts/Details.tsx";
import { Icon } from "../../../parts/Icon.tsx";
import { Empty } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { ApprovalCard } from "../../approvals/ApprovalCard.tsx";
import { Block, Said } from "./Block.tsx";
import { Composer } from "./Composer.tsx";
import { GoalView } from "./GoalView.tsx";
import { type Item, itemsOf } from "./items.ts";
import { PlanView } from "./PlanView.tsx";
import { Queue } from "./Queue.tsx";
import { SubagentTree } from "./SubagentTree.tsx";
import type { Inputs } from "./use-run.ts";

/** Things that are drawn at once; earlier ones come when they are asked for. */
const DRAWN = 150;

/** Pixels from the bottom within which a page follows what is new. */
const BOTTOM_PIXELS = 120;

interface ConversationViewProps {
  readonly run: AgentExecution;
  readonly blocks: readonly AgentOutputBlock[];
  readonly inputs: UseQueryResult<Inputs>;
  readonly isStopped: boolean;
}

/** The conversation with a run: what was said, what the agent did, what it asks, and the field for the next message. */
export function ConversationView({ run, blocks, inputs, isStopped }: ConversationViewProps) {
  const [drawn, setDrawn] = useState(DRAWN);
  const all = inputs.data?.inputs;
  const items = useMemo(() => itemsOf(all ?? [], blocks), [all, blocks]);
  const shown = items.slice(-drawn);
  const queue = (inputs.data?.queue ?? []).filter(({ receipt }) => receipt === Receipt.QUEUED);
  const plan = blocks.findLast(({ block }) => block.case === "plan")?.block;
  const usage = blocks.findLast(({ block }) => block.case === "usage")?.block;
  const content = useFollowedEnd();
  const asked = run.status?.pendingApprovalIds ?? [];
  const isWorking = run.status?.phase === Phase.RUNNING && asked.length === 0;
  const subagents = run.status?.subagents ?? [];
  const hasSide = plan?.case === "plan" || subagents.length > 0;
  return (
    <div className={hasSide ? "talk with-plan" : "talk"}>
      <div className="talk-main" ref={content}>
        <Problem error={inputs.error} />
        <GoalView run={run} />
        <div className="talk-items" role="log" aria-label="Conversation">
          {items.length > shown.length && (
            <Button variant="default" size="xs" onClick={() => setDrawn(drawn + DRAWN)}>
              Show {Math.min(DRAWN, items.length - shown.length)} earlier
            </Button>
          )}
          {shown.map((item) => (
            <ItemView key={item.key} item={item} />
          ))}
          {items.length === 0 && !isWorking && asked.length === 0 && (
            <Empty title="Nothing has been said yet.">
              <p>{isStopped ? "The run ended before it began." : "Send the agent a message below."}</p>
            </Empty>
          )}
          {isWorking && (
            <p className="dim working">
              <Icon name="running" /> The agent works.
            </p>
          )}
        </div>
        <Asked runId={run.id} ids={asked} />
        <div className="talk-foot">
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

function ItemView({ item }: { readonly item: Item }) {
  if (item.kind === "input") return <Said input={item.input} />;
  if (item.kind === "block") return <Block block={item.block} />;
  return (
    <Details
      className="steps"
      summary={
        <>
          <Icon name="right" />
          {item.blocks.length} steps
        </>
      }
    >
      {item.blocks.map((block) => (
        <Block key={String(block.sequence)} block={block} />
      ))}
    </Details>
  );
}

/** What the run asks for, to be decided where it happened. */
function Asked({ runId, ids }: { readonly runId: string; readonly ids: readonly string[] }) {
  const { data, error } = useQuery(
    ApprovalService.method.listApprovals,
    { filter: { agentExecutionIds: [runId], states: [ApprovalState.PENDING] } },
    { enabled: ids.length > 0 },
  );
  if (ids.length === 0) return null;
  // What was read before the last question may have an earlier one, which is decided.
  const asked = data?.approvals.filter(({ id }) => ids.includes(id));
  return (
    <>
      <Problem error={error} />
      {asked?.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} isInRun />
      ))}
    </>
  );
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

/** Keeps the end in sight while the person is there; whoever has scrolled up is left where they are. */
function useFollowedEnd() {
  const content = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    let isAtEnd = true;
    const page = document.documentElement;
    const look = () => {
      isAtEnd = page.scrollHeight - page.clientHeight - window.scrollY < BOTTOM_PIXELS;
    };
    const observer = new ResizeObserver(() => {
      if (isAtEnd) window.scrollTo({ top: page.scrollHeight });
    });
    if (content.current) observer.observe(content.current);
    window.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      window.removeEventListener("scroll", look);
    };
  }, []);
  return content;
}
