import { create, equals } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import {
  type ProjectPrebuildConfiguration as Configuration,
  ProjectPrebuildConfigurationSchema as ConfigurationSchema,
  PrebuildTriggerSchema,
  type Project,
} from "#gen/service/v1/project_pb.js";
import { ProjectService, UpdateProjectRequestSchema } from "#gen/service/v1/project_service_pb.js";
import { Who } from "../../api/person.tsx";
import { queries } from "../../api/server.tsx";
import { ChoiceField, NumberField, PartBreach } from "../../parts/fields/fields.tsx";
import { RuledForm } from "../../parts/fields/RuledForm.tsx";
import { ClassPicker } from "../../parts/pickers/ClassPicker.tsx";

/** Maximum classes with prebuilds (contract). */
const MAX_CLASSES = 30;
const MINUTE_MS = 60_000;

/** The hours of the day for prebuilds, in UTC; "" for none. */
const HOURS = ["", ...Array.from({ length: 24 }, (_, hour) => String(hour))].map(
  (hour) => [hour, hour === "" ? "Never" : `Every day at ${hour.padStart(2, "0")}:00 UTC`] as const,
);

/** Edits for which classes a project has prebuilds, and when they are made. */
export function PrebuildSettings({
  project,
  nameOf,
  onDone,
}: {
  readonly project: Project;
  /** Returns the name of a class. */
  readonly nameOf: (classId: string) => string;
  readonly onDone: () => void;
}) {
  const stored = project.prebuildConfiguration ?? create(ConfigurationSchema);
  const [initial] = useState(stored);
  const [configuration, setConfiguration] = useState(stored);
  const save = useMutation(ProjectService.method.updateProject, {
    onSuccess() {
      void queries.invalidateQueries();
      onDone();
    },
  });
  const set = (part: Partial<Configuration>) => setConfiguration({ ...configuration, ...part });
  const { environmentClassIds: classIds, timeout, trigger, executor } = configuration;
  const daily = trigger?.trigger.case === "dailySchedule" ? trigger.trigger.value : undefined;
  return (
    <RuledForm
      schema={UpdateProjectRequestSchema}
      message={create(UpdateProjectRequestSchema, {
        projectId: project.id,
        prebuildConfiguration: configuration,
      })}
      verb="Save prebuild configuration"
      isBusy={save.isPending}
      isDisabled={equals(ConfigurationSchema, initial, configuration)}
      error={save.error}
      onDone={(request) => save.mutate(request)}
    >
      {!equals(ConfigurationSchema, initial, stored) && (
        <p className="bar bar-asks" role="status">
          Someone changed the prebuild configuration while you were editing. Saving overwrites that change.
        </p>
      )}
      <Checkbox
        label="Build prebuilds"
        description="If off, no prebuilds are built; the other settings are kept."
        checked={configuration.enabled}
        onChange={(event) => set({ enabled: event.currentTarget.checked })}
      />
      <div className="stack">
        <p>Environments of these classes start from prebuilds:</p>
        {classIds.length === 0 && <p className="dim">None.</p>}
        <ul className="classes">
          {classIds.map((id) => (
            <li key={id} className="row">
              <span>{nameOf(id)}</span>
              <Button
                size="compact-xs"
                variant="default"
                aria-label={`Remove ${nameOf(id)}`}
                onClick={() => set({ environmentClassIds: classIds.filter((each) => each !== id) })}
              >
                Remove
              </Button>
            </li>
          ))}
        </ul>
        <PartBreach path="prebuild_configuration.environment_class_ids" />
        <ClassPicker
          chosen={classIds}
          disabled={classIds.length >= MAX_CLASSES}
          onChoose={(id) => set({ environmentClassIds: [...classIds, id] })}
        />
      </div>
      <div className="field-row">
        <ChoiceField
          path="prebuild_configuration.trigger"
          label="Schedule"
          value={daily ? String(daily.hourUtc) : ""}
          choices={HOURS}
          onChange={(hour) => {
            const { trigger: _, ...rest } = configuration;
            const next = create(PrebuildTriggerSchema, {
              trigger: { case: "dailySchedule", value: { hourUtc: Number(hour) } },
            });
            setConfiguration(hour === "" ? rest : { ...rest, trigger: next });
          }}
        />
        <NumberField
          path="prebuild_configuration.timeout"
          label="Time limit in minutes (empty: 60)"
          value={timeout && durationMs(timeout) / MINUTE_MS}
          onChange={(minutes) => {
            const { timeout: _, ...rest } = configuration;
            setConfiguration(
              minutes === undefined ? rest : { ...rest, timeout: durationFromMs(minutes * MINUTE_MS) },
            );
          }}
        />
      </div>
      <Checkbox
        label="Warm up the editors, so that they open faster"
        checked={configuration.enableIdeWarmup}
        onChange={(event) => set({ enableIdeWarmup: event.currentTarget.checked })}
      />
      <p className="dim">
        {executor ? (
          <>
            They clone with the credentials of <Who subject={executor} />.
          </>
        ) : (
          "Repositories are cloned with the credentials of the project's creator."
        )}
      </p>
    </RuledForm>
  );
}
