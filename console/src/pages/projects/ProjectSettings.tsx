import { useMutation } from "@connectrpc/connect-query";
import type { EnvironmentInitializer_Spec as Spec } from "#gen/service/v1/environment_pb.js";
import type { Project } from "#gen/service/v1/project_pb.js";
import { ProjectService, UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { queries } from "../../api/server.tsx";
import { ChangedMeanwhile, UnsavedChanges, useEdited } from "../../parts/fields/Edited.tsx";
import { movedUp, PartBreach, removed, replaced, TextField } from "../../parts/fields/fields.tsx";
import { AddButton, MemberButtons } from "../../parts/fields/ListButtons.tsx";
import { RuledForm } from "../../parts/fields/RuledForm.tsx";
import { SourceFields } from "./SourceFields.tsx";
import { changeOf, emptySource, SETTINGS, settingsOf } from "./settings.ts";

/** Maximum sources of a project (contract). */
const MAX_SOURCES = 10;

/** Edits the name of a project, and the content of its environments. */
export function ProjectSettings({
  project,
  mayChange,
}: {
  readonly project: Project;
  readonly mayChange: boolean;
}) {
  const stored = settingsOf(project);
  const { initial, draft, setDraft, isOther, isRestored, takeOver, onSaved } = useEdited(
    `settings ${project.id}`,
    stored,
    SETTINGS,
  );
  const change = changeOf(initial, draft);
  const save = useMutation(ProjectService.method.updateProject, {
    onSuccess: () => void queries.invalidateQueries(),
  });
  const set = (part: Partial<typeof draft>) => setDraft({ ...draft, ...part });
  return (
    <RuledForm
      schema={UpdateProjectRequestSchema}
      message={draft}
      verb="Save settings"
      isBusy={save.isPending}
      isDisabled={!mayChange || !change}
      error={save.error}
      onDone={() =>
        change &&
        save.mutate(change, {
          onSuccess: ({ project: saved }) => saved && onSaved(draft, settingsOf(saved)),
        })
      }
      said={
        save.isSuccess &&
        !change && (
          <span className="dim" role="status">
            Saved.
          </span>
        )
      }
    >
      {isOther && <ChangedMeanwhile what="the project" onShow={() => takeOver(stored)} />}
      {isRestored && !isOther && <UnsavedChanges onDiscard={() => takeOver(stored)} />}
      <fieldset className="plain" disabled={!mayChange}>
        <section className="editor-part" aria-label="Name of the project">
          <TextField path="name" label="Name" value={draft.name ?? ""} onChange={(name) => set({ name })} />
        </section>
        <Sources
          specs={draft.initializer?.specs ?? []}
          onChange={(specs) =>
            draft.initializer && set({ initializer: { ...draft.initializer, specs: [...specs] } })
          }
        />
        <section className="editor-part" aria-label="Files of the repository">
          <h2>Files of the repository that configure it</h2>
          <div className="field-row">
            <TextField
              path="devcontainer_file_path"
              label="Devcontainer (empty: the usual path)"
              value={draft.devcontainerFilePath ?? ""}
              onChange={(devcontainerFilePath) => set({ devcontainerFilePath })}
            />
            <TextField
              path="automations_file_path"
              label="Automations (empty: the usual path)"
              value={draft.automationsFilePath ?? ""}
              onChange={(automationsFilePath) => set({ automationsFilePath })}
            />
          </div>
        </section>
      </fieldset>
    </RuledForm>
  );
}

function Sources({
  specs,
  onChange,
}: {
  readonly specs: readonly Spec[];
  readonly onChange: (specs: readonly Spec[]) => void;
}) {
  return (
    <section className="editor-part" aria-label="Sources">
      <h2>Contents of its environments</h2>
      <PartBreach path="initializer.specs" />
      {specs.length === 0 && <p className="dim">None: they start empty.</p>}
      {specs.map((source, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: sources have no ids, and their fields are all controlled
        <fieldset key={at} className="part">
          <legend className="dim small">Source {at + 1}</legend>
          <SourceFields
            path={`initializer.specs[${at}]`}
            source={source}
            onChange={(next) => onChange(replaced(specs, at, next))}
          />
          <MemberButtons
            what={`source ${at + 1}`}
            onMoveUp={at > 0 ? () => onChange(movedUp(specs, at)) : undefined}
            onRemove={() => onChange(removed(specs, at))}
          />
        </fieldset>
      ))}
      <AddButton
        label="Add source"
        disabled={specs.length >= MAX_SOURCES}
        onAdd={() => onChange([...specs, emptySource("git")])}
      />
    </section>
  );
}
