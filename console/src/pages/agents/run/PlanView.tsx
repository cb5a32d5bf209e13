import {
  type AgentOutputBlock_Plan,
  AgentOutputBlock_Plan_State as PlanState,
} from "#gen/service/v1/agent_pb.js";
import { State, type Tone } from "../../../parts/State.tsx";

const STATES: Readonly<Record<PlanState, readonly [Tone, string]>> = {
  [PlanState.UNSPECIFIED]: ["waiting", "Not started"],
  [PlanState.PENDING]: ["waiting", "Not started"],
  [PlanState.RUNNING]: ["running", "In progress"],
  [PlanState.DONE]: ["done", "Done"],
};

/** Shows the agent's plan and its progress; always visible. */
export function PlanView({ plan: { entries } }: { readonly plan: AgentOutputBlock_Plan }) {
  const done = entries.filter(({ state }) => state === PlanState.DONE).length;
  return (
    <aside className="plan" aria-label="Plan">
      <h2>
        Plan <span className="dim figures">{`${done} of ${entries.length}`}</span>
      </h2>
      <ol>
        {entries.map(({ content, state }, at) => {
          const [tone, word] = STATES[state];
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: a plan is replaced as a whole
            <li key={at}>
              <span>{content}</span>
              <State tone={tone} word={word} />
            </li>
          );
        })}
      </ol>
    </aside>
  );
}
