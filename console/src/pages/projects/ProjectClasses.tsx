import { useMutation } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import type { Project } from "#gen/service/v1/project_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { ChangedMeanwhile, UnsavedChanges, useEdited } from "../../parts/fields/Edited.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ClassPicker } from "../../parts/pickers/ClassPicker.tsx";
import { useClasses } from "../../parts/pickers/use-classes.ts";

/** Represents the local runner of the environment's creator among ids of classes. */
const LOCAL = { id: "local", name: "The local runner of the user who creates it" };

/** Maximum entries of a project (contract). */
const MAX_CLASSES = 30;

const IDS = {
  isSame: (one: readonly string[], other: readonly string[]) => one.join() === other.join(),
  toText: (ids: readonly string[]) => ids.join(),
  fromText: (text: string) => text.split(",").filter(Boolean),
};

/** Edits what a project's environments run on, in order of preference. */
export function ProjectClasses({
  project,
  onSaved: onRead,
}: {
  readonly project: Project;
  readonly onSaved: () => void;
}) {
  const stored = project.environmentClasses.map(({ environmentClass: each }) =>
    each.case === "environmentClassId" ? each.value : LOCAL.id,
  );
  const {
    draft: entries,
    setDraft: setEntries,
    isEdited,
    isOther,
    isRestored,
    takeOver,
    onSaved,
  } = useEdited<readonly string[]>(`classes ${project.id}`, stored, IDS);
  const classes = useClasses();
  const save = useMutation(ProjectService.method.updateProjectEnvironmentClasses, { onSuccess: onRead });
  const names = new Map(classes.data?.map(({ id, displayName }) => [id, displayName]));
  names.set(LOCAL.id, LOCAL.name);
  return (
    <div className="stack">
      <Problem error={save.error} />
      {isOther && <ChangedMeanwhile what="the classes" onShow={() => takeOver(stored)} />}
      {isRestored && !isOther && <UnsavedChanges onDiscard={() => takeOver(stored)} />}
      <p className="dim lead">
        An environment uses the first class in the list unless it names another. If the list is empty, any
        runner can run it.
      </p>
      {entries.length === 0 && <Empty title="The project lists no classes." />}
      <ol className="classes">
        {entries.map((id, at) => (
          <li key={id} className="row">
            <span>{names.get(id) ?? id}</span>
            <Button
              size="compact-xs"
              variant="default"
              disabled={at === 0}
              aria-label={`Move up ${names.get(id) ?? id}`}
              onClick={() =>
                setEntries([...entries.slice(0, at - 1), id, entries[at - 1] ?? "", ...entries.slice(at + 1)])
              }
            >
              Move up
            </Button>
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Remove ${names.get(id) ?? id}`}
              onClick={() => setEntries(entries.filter((each) => each !== id))}
            >
              Remove
            </Button>
          </li>
        ))}
      </ol>
      <ClassPicker
        chosen={entries}
        others={[LOCAL]}
        disabled={entries.length >= MAX_CLASSES}
        onChoose={(id) => setEntries([...entries, id])}
      />
      <div className="row">
        <Button
          size="xs"
          loading={save.isPending}
          disabled={entries.length === 0 || !isEdited}
          onClick={() =>
            save.mutate(
              {
                projectId: project.id,
                projectEnvironmentClasses: entries.map((id, order) => ({
                  order,
                  environmentClass:
                    id === LOCAL.id
                      ? { case: "localRunner" as const, value: true }
                      : { case: "environmentClassId" as const, value: id },
                })),
              },
              { onSuccess: () => onSaved(entries, entries) },
            )
          }
        >
          Save classes
        </Button>
        {save.isSuccess && !isEdited && (
          <span className="dim" role="status">
            Saved.
          </span>
        )}
      </div>
    </div>
  );
}
