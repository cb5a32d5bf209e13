import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Project } from "#gen/service/v1/project_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { Problem } from "../../parts/Problem.tsx";
import { editorsIn, editorsText } from "./editors-text.ts";

/** The editors that suit a project, as lines of their names and versions. */
export function ProjectEditors({
  project,
  onSaved,
}: {
  readonly project: Project;
  readonly onSaved: () => void;
}) {
  const [text, setText] = useState(() => editorsText(project.recommendedEditors?.editors ?? {}));
  const save = useMutation(ProjectService.method.updateProject, { onSuccess: onSaved });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        save.mutate({ projectId: project.id, recommendedEditors: { editors: editorsIn(text) } });
      }}
    >
      <Problem error={save.error} />
      <Textarea
        label="Recommended editors, one a line"
        description="A name, and after a colon the versions that are recommended, such as code: stable, insiders. Without versions all are."
        autosize
        minRows={4}
        maxRows={20}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" size="xs" loading={save.isPending}>
          Save editors
        </Button>
        {save.isSuccess && (
          <span className="dim" role="status">
            Saved.
          </span>
        )}
      </div>
    </form>
  );
}
