import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea } from "@mantine/core";
import type { FormEvent } from "react";
import type { Project } from "#gen/service/v1/project_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { ChangedMeanwhile, UnsavedChanges, useEdited } from "../../parts/fields/Edited.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { editorsIn, editorsText } from "./editors-text.ts";

const editorsOf = (project: Project): string => editorsText(project.recommendedEditors?.editors ?? {});

/** Edits the recommended editors of a project, as lines of names and versions. */
export function ProjectEditors({
  project,
  onSaved: onRead,
}: {
  readonly project: Project;
  readonly onSaved: () => void;
}) {
  const stored = editorsOf(project);
  const {
    draft: text,
    setDraft: setText,
    isEdited,
    isOther,
    isRestored,
    takeOver,
    onSaved,
  } = useEdited(`editors ${project.id}`, stored);
  const save = useMutation(ProjectService.method.updateProject, { onSuccess: onRead });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        save.mutate(
          { projectId: project.id, recommendedEditors: { editors: editorsIn(text) } },
          { onSuccess: ({ project: saved }) => saved && onSaved(text, editorsOf(saved)) },
        );
      }}
    >
      <Problem error={save.error} />
      {isOther && <ChangedMeanwhile what="the editors" onShow={() => takeOver(stored)} />}
      {isRestored && !isOther && <UnsavedChanges onDiscard={() => takeOver(stored)} />}
      <Textarea
        label="Recommended editors, one per line"
        description="A name, optionally followed by a colon and the recommended versions, such as code: stable, insiders. Without versions, all are recommended."
        autosize
        minRows={4}
        maxRows={20}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" size="xs" loading={save.isPending} disabled={!isEdited}>
          Save editors
        </Button>
        {save.isSuccess && !isEdited && (
          <span className="dim" role="status">
            Saved.
          </span>
        )}
      </div>
    </form>
  );
}
