import { Link } from "@tanstack/react-router";
import {
  AgentExecution_Phase as Phase,
  type AgentExecution_Status_Subagent as Subagent,
} from "#gen/service/v1/agent_pb.js";
import { State, type Tone } from "../../../parts/State.tsx";

const STATES: Readonly<Record<Phase, readonly [Tone, string]>> = {
  [Phase.UNSPECIFIED]: ["waiting", "Unknown"],
  [Phase.PENDING]: ["waiting", "Waiting for a runner"],
  [Phase.RUNNING]: ["running", "Working"],
  [Phase.WAITING_FOR_INPUT]: ["asks", "Waiting for input"],
  [Phase.STOPPED]: ["done", "Ended"],
};

interface SubagentTreeProps {
  readonly runId: string;
  readonly subagents: readonly Subagent[];
}

/** Shows the sub-agents of a run as a tree, each below the one that started it. */
export function SubagentTree({ runId, subagents }: SubagentTreeProps) {
  const known = new Set(subagents.map(({ id }) => id));
  // A sub-agent whose parent is unknown is at the top.
  const children = Map.groupBy(subagents, ({ parentId }) => (known.has(parentId) ? parentId : runId));
  return (
    <aside className="plan" aria-label="Sub-agents">
      <h2>
        Sub-agents <span className="dim figures">{subagents.length}</span>
      </h2>
      <Branch of={runId} subagents={children} depth={0} />
    </aside>
  );
}

/** Maximum depth of the tree: a report may name itself as its parent. */
const MAX_DEPTH = 10;

function Branch({
  of,
  subagents,
  depth,
}: {
  readonly of: string;
  readonly subagents: ReadonlyMap<string, readonly Subagent[]>;
  readonly depth: number;
}) {
  const here = subagents.get(of);
  if (!here || depth >= MAX_DEPTH) return null;
  return (
    <ul className="branch">
      {here.map(({ id, name, phase, currentActivity, statusMessage }) => {
        const [tone, word] = STATES[phase];
        const does = currentActivity || statusMessage;
        return (
          <li key={id}>
            <Link to="/agents/$runId" params={{ runId: id }}>
              {name || id.slice(-8)}
            </Link>
            <State tone={tone} word={word} />
            {does && <p className="dim small">{does}</p>}
            <Branch of={id} subagents={subagents} depth={depth + 1} />
          </li>
        );
      })}
    </ul>
  );
}
