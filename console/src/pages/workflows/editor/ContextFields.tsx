import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import {
  type WorkflowTriggerContext_Repositories as Repositories,
  WorkflowTriggerContext_Repositories_RepositorySelectorSchema as RepositorySelectorSchema,
  WorkflowTriggerContext_Repositories_RepositoryURLsSchema as RepositoryURLsSchema,
  type WorkflowTriggerContext,
  WorkflowTriggerContextSchema,
} from "#gen/service/v1/workflow_pb.js";
import { ChoiceField, LongField, PartBreach, removed, TextField } from "./fields.tsx";

/** Where actions run, as the form offers it. */
type Kind = "urls" | "search" | "projects" | "agent" | "fromTrigger";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["urls", "Repositories by their URLs"],
  ["search", "Repositories that a search finds"],
  ["projects", "Projects"],
  ["agent", "An agent without code of its own"],
  ["fromTrigger", "The repository of the event"],
];

function kindOf({ context }: WorkflowTriggerContext): Kind {
  if (context.case !== "repositories") return context.case ?? "urls";
  return context.value.repositorySelector.case === "repoSelector" ? "search" : "urls";
}

/** Returns a context of a kind with nothing filled in. */
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
  /** Whether an event of a pull request may bring the repository. */
  readonly isOfEvent: boolean;
}

/** Where an execution runs: one action for each repository or project, or one for an agent. */
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
        <ProjectPicker
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
          label="What the agent is told"
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
  const classes = useQuery(RunnerConfigurationService.method.listEnvironmentClasses, {
    pagination: { pageSize: 100 },
  });
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
            label="Search, in the host's own query language"
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
        label="Class of the environments"
        value={environmentClassId}
        onChange={(event) => onChange({ ...repositories, environmentClassId: event.currentTarget.value })}
        data={[
          { value: "", label: "Any runner" },
          ...(environmentClassId &&
          !classes.data?.environmentClasses.some(({ id }) => id === environmentClassId)
            ? [{ value: environmentClassId, label: environmentClassId }]
            : []),
          ...(classes.data?.environmentClasses ?? []).map(({ id, displayName }) => ({
            value: id,
            label: displayName,
          })),
        ]}
      />
    </>
  );
}

/** Addresses, one a line; lines that are empty yet are none. */
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
        label="URLs to clone, one a line"
        placeholder="https://git.example.org/team/hello.git"
        isProgram
        value={typed}
        onChange={(text) => {
          setTyped(text);
          onChange(text.split("\n").flatMap((line) => line.trim() || []));
        }}
      />
      {urls.map((url, at) => (
        // The rules name each address by its place.
        <PartBreach key={url} path={`${path}[${at}]`} />
      ))}
    </>
  );
}

/** Projects that a search adds at most at once. */
const FOUND = 8;

/** The projects of a context by their names, and a search that adds others. */
function ProjectPicker({
  path,
  ids,
  onChange,
}: {
  readonly path: string;
  readonly ids: readonly string[];
  readonly onChange: (ids: string[]) => void;
}) {
  const [text, setText] = useState("");
  const [search] = useDebouncedValue(text, 200);
  const found = useQuery(ProjectService.method.listProjects, {
    filter: { search },
    pagination: { pageSize: FOUND },
  });
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
      <TextInput
        type="search"
        label={ids.length === 0 ? "Projects: search, then add" : "Add another project"}
        value={text}
        maxLength={256}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") event.preventDefault();
        }}
      />
      <div className="row">
        {found.data?.projects
          .filter(({ id }) => !ids.includes(id))
          .map(({ id, metadata }) => (
            <Button key={id} variant="default" size="compact-xs" onClick={() => onChange([...ids, id])}>
              Add {metadata?.name}
            </Button>
          ))}
      </div>
    </div>
  );
}

function ProjectName({ id }: { readonly id: string }) {
  const { data, error } = useQuery(
    ProjectService.method.getProject,
    { projectId: id },
    { staleTime: 600_000, refetchInterval: false, retry: false },
  );
  if (error) return <code>{id}</code>;
  return <span>{data?.project?.metadata?.name ?? "…"}</span>;
}
