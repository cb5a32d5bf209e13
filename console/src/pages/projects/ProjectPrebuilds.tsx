import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import {
  PrebuildPhase as Phase,
  type Prebuild,
  PrebuildMetadata_PrebuildTrigger as Trigger,
} from "#gen/service/v1/prebuild_pb.js";
import { PrebuildService } from "#gen/service/v1/prebuild_service_pb.js";
import { type Project, ProjectPhase } from "#gen/service/v1/project_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { useClasses } from "../../parts/pickers/use-classes.ts";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { PrebuildSettings } from "./PrebuildSettings.tsx";

const PHASES: Readonly<Record<Phase, readonly [Tone, string]>> = {
  [Phase.UNSPECIFIED]: ["waiting", "Unknown"],
  [Phase.PENDING]: ["waiting", "Waiting for its runner"],
  [Phase.STARTING]: ["running", "Starting"],
  [Phase.RUNNING]: ["running", "Running"],
  [Phase.STOPPING]: ["failed", "Failed, cleaning up"],
  [Phase.SNAPSHOTTING]: ["running", "Running"],
  [Phase.COMPLETED]: ["done", "Ready"],
  [Phase.FAILED]: ["failed", "Failed"],
  [Phase.CANCELLING]: ["stopped", "Cancelling"],
  [Phase.CANCELLED]: ["stopped", "Cancelled"],
  [Phase.DELETING]: ["stopped", "Being deleted"],
  [Phase.DELETED]: ["stopped", "Deleted"],
};

/** Lists the workspaces that runners have prepared, or are preparing, for a project's environments. */
export function ProjectPrebuilds({
  project,
  mayChange,
}: {
  readonly project: Project;
  /** True when the person may start, cancel and delete prebuilds, because they may change the project. */
  readonly mayChange: boolean;
}) {
  const list = useInfiniteQuery(
    PrebuildService.method.listPrebuilds,
    { ...FIRST_PAGE, filter: { projectIds: [project.id] } },
    BY_PAGE,
  );
  const names = new Map(useClasses().data?.map(({ id, displayName }) => [id, displayName]));
  const nameOf = (classId: string) => names.get(classId) ?? classId;
  const read = () => void list.refetch();
  const cancel = useMutation(PrebuildService.method.cancelPrebuild, {
    // The page shows the result of the later of the two.
    onMutate: (): void => remove.reset(),
    onSettled: read,
  });
  const remove = useMutation(PrebuildService.method.deletePrebuild, {
    onMutate: (): void => cancel.reset(),
    onSettled: read,
  });
  const classIds = project.prebuildConfiguration?.environmentClassIds ?? [];
  return (
    <Section
      title="Prebuilds"
      more={
        mayChange &&
        project.desiredPhase !== ProjectPhase.DELETED && (
          <span className="row">
            <DialogButton label="Configure prebuilds" size={640} isMain={false}>
              {(close) => <PrebuildSettings project={project} nameOf={nameOf} onDone={close} />}
            </DialogButton>
            {classIds.length > 0 && (
              <DialogButton label="Start prebuild">
                {(close) => (
                  <StartPrebuild
                    projectId={project.id}
                    classes={classIds.map((id) => [id, nameOf(id)] as const)}
                    onDone={() => {
                      read();
                      close();
                    }}
                  />
                )}
              </DialogButton>
            )}
          </span>
        )
      }
    >
      <Problem error={cancel.error ?? remove.error} />
      <Loaded reading={list}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.prebuilds);
          if (rows.length === 0) {
            return (
              <Empty title="This project has no prebuilds.">
                <p>
                  {classIds.length > 0
                    ? "Environments start from a ready prebuild instead of cloning the repositories."
                    : "Prebuilds are built for the classes in the prebuild configuration, which lists none."}
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Prebuilds"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(list)}
              columns={[
                { head: "Class", cell: ({ metadata }) => nameOf(metadata?.environmentClassId ?? "") },
                { head: "State", cell: (row) => <HowFar prebuild={row} /> },
                { head: "By", cell: (row) => <By prebuild={row} />, isExtra: true },
                { head: "Created", cell: ({ metadata }) => <Ago at={metadata?.createdAt} /> },
                ...(mayChange
                  ? [
                      {
                        head: "Action",
                        cell: (row: Prebuild) => (
                          <div className="row-actions">
                            {isUnfinished(row) && (
                              <ConfirmButton
                                label="Cancel"
                                question="The runner stops the prebuild and removes its files."
                                onConfirm={() => cancel.mutate({ prebuildId: row.id })}
                                isBusy={cancel.isPending && cancel.variables.prebuildId === row.id}
                              />
                            )}
                            <ConfirmButton
                              label="Delete"
                              question="No new environment starts from it. Environments that already did keep their copies."
                              disabled={row.status?.phase === Phase.DELETING}
                              onConfirm={() => remove.mutate({ prebuildId: row.id })}
                              isBusy={remove.isPending && remove.variables.prebuildId === row.id}
                            />
                          </div>
                        ),
                      },
                    ]
                  : []),
              ]}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}

const isUnfinished = ({ status }: Prebuild) =>
  status?.phase === Phase.PENDING || status?.phase === Phase.RUNNING;

/** Shows the progress of a prebuild, and what people should know about its end. */
function HowFar({ prebuild: { status } }: { readonly prebuild: Prebuild }) {
  const [tone, word] = PHASES[status?.phase ?? Phase.UNSPECIFIED];
  const notes = [status?.failureMessage, status?.warningMessage].filter(Boolean);
  return (
    <>
      <State tone={tone} word={word} />
      {notes.map((note) => (
        <div key={note} className="dim small">
          {note}
        </div>
      ))}
    </>
  );
}

function By({ prebuild: { metadata } }: { readonly prebuild: Prebuild }) {
  return metadata?.triggeredBy === Trigger.SCHEDULED ? "the schedule" : <Who subject={metadata?.creator} />;
}

/** Starts a prebuild for one of a project's classes. */
function StartPrebuild({
  projectId,
  classes,
  onDone,
}: {
  readonly projectId: string;
  readonly classes: readonly (readonly [id: string, name: string])[];
  readonly onDone: () => void;
}) {
  const start = useMutation(PrebuildService.method.createPrebuild, { onSuccess: onDone });
  return (
    <div className="stack">
      <Problem error={start.error} />
      <p className="dim">
        The runner of the class clones the project's repositories with the credentials of the executor. When
        the prebuild is ready, environments of the class start from it.
      </p>
      {classes.map(([environmentClassId, name]) => (
        <Button
          key={environmentClassId}
          size="xs"
          variant="default"
          loading={start.isPending && start.variables.environmentClassId === environmentClassId}
          onClick={() => start.mutate({ projectId, environmentClassId, spec: {} })}
        >
          For {name}
        </Button>
      ))}
    </div>
  );
}
