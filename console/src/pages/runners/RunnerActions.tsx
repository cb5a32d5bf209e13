import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { RunnerPhase } from "#gen/service/v1/runner_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { rereadAll } from "../../api/server.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { Problem } from "../../parts/Problem.tsx";
import type { Runner } from "../home/RunnersSection.tsx";

/** Pauses, resumes or deletes a runner; for administrators. */
export function RunnerActions({ runner: { runnerId, spec } }: { readonly runner: Runner }) {
  const update = useMutation(RunnerService.method.updateRunner, rereadAll);
  const remove = useMutation(RunnerService.method.deleteRunner, rereadAll);
  const isPaused = spec?.desiredPhase === "RUNNER_PHASE_INACTIVE";
  const desiredPhase = isPaused ? RunnerPhase.ACTIVE : RunnerPhase.INACTIVE;
  return (
    <div className="stack">
      <Problem error={remove.error ?? update.error} />
      <div className="row">
        <Button
          variant="default"
          size="xs"
          loading={update.isPending}
          onClick={() => update.mutate({ runnerId, spec: { desiredPhase } })}
        >
          {isPaused ? "Resume" : "Pause"}
        </Button>
        <ConfirmButton
          label="Delete"
          question="Deletes the runner with its classes and tokens. Its actions start again on another runner. You cannot delete a runner that still has environments."
          onConfirm={() => remove.mutate({ runnerId })}
          isBusy={remove.isPending}
        />
      </div>
    </div>
  );
}
