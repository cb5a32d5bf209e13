import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { type AgentExecution, AgentExecution_Phase as Phase } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { Who } from "../../../api/person.tsx";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Page, TabLinks } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { State } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { Sharing } from "../../sharing/Sharing.tsx";
import { runState, runTitle } from "../run-state.ts";
import { ConversationView } from "./ConversationView.tsx";
import { Changes } from "./changes/Changes.tsx";
import { Network } from "./Network.tsx";
import { RunMenu } from "./RunMenu.tsx";
import { useRun } from "./use-run.ts";
import "../../../parts/work.css";

/** Shows one run of an agent: its conversation, and its changes. */
export function Run() {
  const { runId } = useParams({ from: "/agents/$runId" });
  const { tab = "conversation" } = useSearch({ from: "/agents/$runId" });
  // The key resets all state when the run changes.
  return <RunPage key={runId} runId={runId} tab={tab} />;
}

function RunPage({ runId, tab }: { readonly runId: string; readonly tab: string }) {
  const { run, first, blocks, inputs, state } = useRun(runId);
  const stop = useMutation(AgentService.method.stopAgentExecution, { onSettled: () => first.refetch() });
  if (!run) {
    return (
      <Page title="Agent run">
        <Loaded reading={first}>{() => null}</Loaded>
      </Page>
    );
  }
  const [tone, word] = runState(run);
  const isStopped = run.status?.phase === Phase.STOPPED;
  const environmentId = run.status?.usedEnvironments.at(-1)?.environmentId;
  return (
    <Page
      title={runTitle(run)}
      wide={tab === "changes"}
      mark={<State tone={tone} word={word} />}
      facts={<Facts run={run} />}
      actions={
        <>
          <RunMenu run={run} isStopped={isStopped} />
          {!isStopped && (
            <ConfirmButton
              label="Stop run"
              question="Stops the agent's program. Its changes stay, and you can resume the run with a message."
              onConfirm={() => stop.mutate({ agentExecutionId: runId })}
              isBusy={stop.isPending}
            />
          )}
        </>
      }
    >
      <Problem error={stop.error} />
      {run.status?.failureMessage && <p className="bar bar-failed">{run.status.failureMessage}</p>}
      {run.status?.warningMessage && <p className="bar bar-asks">{run.status.warningMessage}</p>}
      {state === "behind" && !isStopped && (
        <p className="bar late" role="status">
          This page may be out of date: it is waiting for the run's stream.
        </p>
      )}
      <TabLinks
        current={tab}
        keep={["diff", "base"]}
        tabs={[
          ["conversation", "Conversation"],
          ["changes", "Changes"],
          ["network", "Network"],
          ["sharing", "Sharing"],
        ]}
      />
      {tab === "sharing" ? (
        <Sharing resourceType={ResourceType.AGENT_EXECUTION} resourceId={runId} use="send it messages" />
      ) : !["changes", "network"].includes(tab) ? (
        <ConversationView run={run} blocks={blocks} inputs={inputs} isStopped={isStopped} />
      ) : !environmentId ? (
        <Empty title="The run has no environment yet.">
          <p>The files it changes and the hosts it reaches will appear here.</p>
        </Empty>
      ) : tab === "network" ? (
        <Network environmentId={environmentId} />
      ) : (
        <Changes
          runId={runId}
          environmentId={environmentId}
          isWorking={run.status?.phase === Phase.RUNNING}
          streamed={String(run.status?.outputs.changes_digest?.value.value ?? "")}
          version={String(run.status?.statusVersion ?? 0n)}
        />
      )}
    </Page>
  );
}

function Facts({ run: { metadata, spec } }: { readonly run: AgentExecution }) {
  const { data } = useQuery(AgentService.method.listAgents, { pagination: { pageSize: 100 } });
  const agent = data?.agents.find(({ id }) => id === spec?.agentId);
  const context = spec?.codeContext?.context;
  return (
    <>
      {agent && <span>{agent.description ? `${agent.name}: ${agent.description}` : agent.name}</span>}
      <span>
        started by <Who subject={metadata?.creator} />, <Ago at={metadata?.createdAt} />
      </span>
      {context?.case === "contextUrl" && <code>{context.value.url}</code>}
      {metadata?.parentExecutionId && (
        <Link to="/agents/$runId" params={{ runId: metadata.parentExecutionId }}>
          a sub-agent of another run
        </Link>
      )}
      {metadata?.forkedFrom && (
        <Link to="/agents/$runId" params={{ runId: metadata.forkedFrom }}>
          branches off another run
        </Link>
      )}
      {metadata?.resumedFrom && (
        <Link to="/agents/$runId" params={{ runId: metadata.resumedFrom }}>
          continues an earlier run
        </Link>
      )}
      {metadata?.trace && (
        <span>
          trace <code>{metadata.trace.traceId}</code>
        </span>
      )}
    </>
  );
}
