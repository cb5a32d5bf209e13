import { create } from "@bufbuild/protobuf";
import { Button, NativeSelect } from "@mantine/core";
import { useState } from "react";
import {
  type WorkflowTriggerContext_Repositories as Repositories,
  WorkflowTriggerContext_Repositories_RepositorySelectorSchema as RepositorySelectorSchema,
  WorkflowTriggerContext_Repositories_RepositoryURLsSchema as RepositoryURLsSchema,
  type WorkflowTriggerContext,
  WorkflowTriggerContextSchema,
} from "#gen/service/v1/workflow_pb.js";
import { ChoiceField, LongField, PartBreach, removed, TextField } from "../../../parts/fields/fields.tsx";
import { ProjectName, ProjectPicker } from "../../../parts/pickers/ProjectPicker.tsx";
import { useClasses } from "../../../parts/pickers/use-classes.ts";

/** The kinds of context that the form offers. */
type Kind = "urls" | "search" | "projects" | "agent" | "fromTrigger";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["urls", "Repositories by their URLs"],
  ["search", "Repositories that a search finds"],
  ["projects", "Projects"],
  ["agent", "An agent without a repository"],
  ["fromTrigger", "The repository of the event"],
];

function kindOf({ context }: WorkflowTriggerContext): Kind {
  if (context.case !== "repositories") return context.case ?? "urls";
  return context.value.repositorySelector.case === "repoSelector" ? "search" : "urls";
}

/** Returns an empty context of a kind. */
export function emptyContext(kind: Kind): WorkflowTriggerContext {
  if (kind === "urls") {
    return repositoriesContext({
      case: "repositoryUrls",
      value: create(RepositoryURLsSchema),
    });
  }
  if (kind === "search") {
    return repositoriesContext({ case: "repoSelector", value: create(RepositorySelectorSchema) });
  }
  return create(WorkflowTriggerContextSchema, { context: { case: kind, value: {} } as never });
}

const repositoriesContext = (
  repositorySelector: Repositories["repositorySelector"],
): WorkflowTriggerContext =>
  create(WorkflowTriggerContextSchema, { context: { case: "repositories", value: { repositorySelector } } });

interface ContextFieldsProps {
  /** The path of the context in the contract. */
  readonly path: string;
  readonly context: WorkflowTriggerContext;
  readonly onChange: (context: WorkflowTriggerContext) => void;
  /** True when an event of a pull request may provide the repository. */
  readonly isOfEvent: boolean;
}

/** Edits where an execution runs: one action for each repository or project, or one for an agent. */
export function ContextFields({ path, context, onChange, isOfEvent }: ContextFieldsProps) {
  const kind = kindOf(context);
  const chosen = context.context;
  return (
    <>
      <ChoiceField
        path={`${path}.context`}
        label="Where it runs"
        value={kind}
        choices={KINDS.filter(([each]) => isOfEvent || each !== "fromTrigger" || each === kind)}
        onChange={(next) => onChange(emptyContext(next))}
      />
      <PartBreach path={path} />
      {chosen.case === "projects" && (
        <ProjectsField
          path={`${path}.projects.project_ids`}
          ids={chosen.value.projectIds}
          onChange={(projectIds) =>
            onChange({ ...context, context: { ...chosen, value: { ...chosen.value, projectIds } } })
          }
        />
      )}
      {chosen.case === "agent" && (
        <LongField
          path={`${path}.agent.prompt`}
          label="Instructions for the agent"
          value={chosen.value.prompt}
          onChange={(prompt) =>
            onChange({ ...context, context: { ...chosen, value: { ...chosen.value, prompt } } })
          }
        />
      )}
      {chosen.case === "repositories" && (
        <RepositoriesFields
          path={`${path}.repositories`}
          repositories={chosen.value}
          onChange={(value) => onChange({ ...context, context: { case: "repositories", value } })}
        />
      )}
    </>
  );
}

function RepositoriesFields({
  path,
  repositories,
  onChange,
}: {
  readonly path: string;
  readonly repositories: Repositories;
  readonly onChange: (repositories: Repositories) => void;
}) {
  const { repositorySelector: selector, environmentClassId } = repositories;
  const classes = useClasses();
  return (
    <>
      {selector.case === "repositoryUrls" && (
        <UrlsField
          path={`${path}.repository_urls.repo_urls`}
          urls={selector.value.repoUrls}
          onChange={(repoUrls) =>
            onChange({
              ...repositories,
              repositorySelector: { ...selector, value: { ...selector.value, repoUrls } },
            })
          }
        />
      )}
      {selector.case === "repoSelector" && (
        <div className="field-row">
          <TextField
            path={`${path}.repo_selector.scm_host`}
            label="Host"
            placeholder="git.example.com"
            value={selector.value.scmHost}
            onChange={(scmHost) =>
              onChange({
                ...repositories,
                repositorySelector: { ...selector, value: { ...selector.value, scmHost } },
              })
            }
          />
          <TextField
            path={`${path}.repo_selector.repo_search_string`}
            label="Search query, in the syntax of the host"
            value={selector.value.repoSearchString}
            onChange={(repoSearchString) =>
              onChange({
                ...repositories,
                repositorySelector: { ...selector, value: { ...selector.value, repoSearchString } },
              })
            }
          />
        </div>
      )}
      <NativeSelect
        label="Environment class"
        value={environmentClassId}
        onChange={(event) => onChange({ ...repositories, environmentClassId: event.currentTarget.value })}
        data={[
          { value: "", label: "Any runner" },
          ...(environmentClassId && !classes.data?.some(({ id }) => id === environmentClassId)
            ? [{ value: environmentClassId, label: environmentClassId }]
            : []),
          ...(classes.data ?? []).map(({ id, displayName }) => ({
            value: id,
            label: displayName,
          })),
        ]}
      />
    </>
  );
}

/** Edits addresses, one per line; empty lines do not count. */
function UrlsField({
  path,
  urls,
  onChange,
}: {
  readonly path: string;
  readonly urls: readonly string[];
  readonly onChange: (urls: string[]) => void;
}) {
  const [typed, setTyped] = useState(() => urls.join("\n"));
  return (
    <>
      <LongField
        path={path}
        label="Clone URLs, one per line"
        placeholder="https://git.example.org/team/hello.git"
        isProgram
        value={typed}
        onChange={(text) => {
          setTyped(text);
          onChange(text.split("\n").flatMap((line) => line.trim() || []));
        }}
      />
      {urls.map((_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rules name each address by its place, and two may be the same
        <PartBreach key={at} path={`${path}[${at}]`} />
      ))}
    </>
  );
}

/** Edits the projects of a context, with a search that adds more. */
function ProjectsField({
  path,
  ids,
  onChange,
}: {
  readonly path: string;
  readonly ids: readonly string[];
  readonly onChange: (ids: string[]) => void;
}) {
  return (
    <div className="stack">
      <PartBreach path={path} />
      {ids.length > 0 && (
        <ul className="chosen">
          {ids.map((id, at) => (
            <li key={id} className="row">
              <ProjectName id={id} />
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                onClick={() => onChange(removed(ids, at))}
              >
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      <ProjectPicker
        label={ids.length === 0 ? "Add a project" : "Add another project"}
        chosen={ids}
        onChoose={({ id }) => onChange([...ids, id])}
      />
    </div>
  );
}
