import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import type { AgentExecution } from "#gen/service/v1/agent_pb.js";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { queries } from "../../../api/server.tsx";
import { Dialog } from "../../../parts/Dialog.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { runTitle } from "../run-state.ts";

/** Asks for confirmation before a stopped run is deleted. */
export function DeleteRun({ run, onClose }: { readonly run: AgentExecution; readonly onClose: () => void }) {
  const navigate = useNavigate();
  const remove = useMutation(AgentService.method.deleteAgentExecution, {
    async onSuccess() {
      await navigate({ to: "/agents" });
      void queries.invalidateQueries();
    },
  });
  return (
    <Dialog title="Delete run" onClose={onClose}>
      <div className="stack">
        <Problem error={remove.error} />
        <p>Deletes “{runTitle(run)}” and its conversation. Branches that it pushed stay.</p>
        <div className="row">
          <Button
            color="red"
            loading={remove.isPending}
            onClick={() => remove.mutate({ agentExecutionId: run.id })}
          >
            Delete run
          </Button>
          <Button variant="default" onClick={onClose}>
            Leave it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
