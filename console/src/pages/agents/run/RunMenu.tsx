import { useMutation } from "@connectrpc/connect-query";
import { Button, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { AgentForkAbility as Ability, type AgentExecution } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { Icon } from "../../../parts/Icon.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { useMayChange } from "../../organization/may-change.ts";
import { DeleteRun } from "./DeleteRun.tsx";
import { ForkEarlier } from "./ForkEarlier.tsx";
import { SetGoal } from "./GoalView.tsx";

/** The rarely used actions on a run: setting a goal, and forking another run. */
export function RunMenu({ run, isStopped }: { readonly run: AgentExecution; readonly isStopped: boolean }) {
  const navigate = useNavigate();
  const [isGoalOpen, goal] = useDisclosure();
  const [isDeleteOpen, deletion] = useDisclosure();
  const mayDelete = useMayChange({
    creator: run.metadata?.creator,
    resourceType: ResourceType.AGENT_EXECUTION,
    resourceId: run.id,
  });
  const [isEarlierOpen, earlier] = useDisclosure();
  const fork = useMutation(AgentService.method.forkAgentExecution, {
    onSuccess: ({ agentExecutionId }) =>
      void navigate({ to: "/agents/$runId", params: { runId: agentExecutionId } }),
  });
  const ability = run.status?.forkAbility ?? Ability.UNSPECIFIED;
  const canFork = ability === Ability.LATEST || ability === Ability.ANY_TURN;
  return (
    <>
      <Problem error={fork.error} />
      <Menu width={240}>
        <Menu.Target>
          <Button
            variant="default"
            size="xs"
            px={8}
            loading={fork.isPending}
            aria-label="More actions for this run"
          >
            <Icon name="more" />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item disabled={isStopped} onClick={goal.open}>
            Set goal
          </Menu.Item>
          <Menu.Item disabled={!canFork} onClick={() => fork.mutate({ agentExecutionId: run.id })}>
            {canFork ? "Fork run from here" : "This agent cannot fork runs"}
          </Menu.Item>
          {ability === Ability.ANY_TURN && (
            <Menu.Item onClick={earlier.open}>Fork from an earlier turn</Menu.Item>
          )}
          {mayDelete && (
            <Menu.Item disabled={!isStopped} onClick={deletion.open}>
              {isStopped ? "Delete run" : "Stop the run to delete it"}
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {isEarlierOpen && <ForkEarlier runId={run.id} onClose={earlier.close} />}
      {isDeleteOpen && <DeleteRun run={run} onClose={deletion.close} />}
      {isGoalOpen && <SetGoal run={run} onClose={goal.close} />}
    </>
  );
}
