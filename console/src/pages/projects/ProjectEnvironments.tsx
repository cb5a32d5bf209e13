import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type Environment, EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { usePerson, Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { useOwnRole } from "../organization/own-role.ts";

const PHASES: Readonly<Record<EnvironmentPhase, readonly [Tone, string]>> = {
  [EnvironmentPhase.UNSPECIFIED]: ["waiting", "Unknown"],
  [EnvironmentPhase.CREATING]: ["waiting", "Creating"],
  [EnvironmentPhase.STARTING]: ["waiting", "Starting"],
  [EnvironmentPhase.RUNNING]: ["running", "Running"],
  [EnvironmentPhase.UPDATING]: ["running", "Updating"],
  [EnvironmentPhase.STOPPING]: ["stopped", "Stopping"],
  [EnvironmentPhase.STOPPED]: ["stopped", "Stopped"],
  [EnvironmentPhase.DELETING]: ["stopped", "Being deleted"],
  [EnvironmentPhase.DELETED]: ["stopped", "Deleted"],
};

/** The filter of environments by its name in the address, with its label. */
const SHOWN = {
  all: [undefined, "All environments"],
  no: [false, "Not archived"],
  yes: [true, "Archived"],
} as const;

type Shown = keyof typeof SHOWN;

function isShown(value: string): value is Shown {
  return Object.hasOwn(SHOWN, value);
}

/** Lists the environments of a project, which can be archived once they are stopped. */
export function ProjectEnvironments({ projectId }: { readonly projectId: string }) {
  const { archived: wanted = "all" } = useSearch({ from: "/projects/$projectId" });
  const shown = isShown(wanted) ? wanted : "all";
  const navigate = useNavigate({ from: "/projects/$projectId" });
  const [archived] = SHOWN[shown];
  const environments = useInfiniteQuery(
    EnvironmentService.method.listEnvironments,
    { ...FIRST_PAGE, filter: { projectIds: [projectId], ...(archived !== undefined && { archived }) } },
    BY_PAGE,
  );
  const onSuccess = async () => void (await environments.refetch());
  const archive = useMutation(EnvironmentService.method.archiveEnvironment, { onSuccess });
  const unarchive = useMutation(EnvironmentService.method.unarchiveEnvironment, { onSuccess });
  const { user } = usePerson();
  const role = useOwnRole(user?.organizationId ?? "", user?.id ?? "");
  const mayArchive = ({ metadata }: Environment) =>
    role === "administrator" || (user !== undefined && metadata?.creator?.id === user.id);
  return (
    <div className="stack">
      <div className="row">
        <NativeSelect
          size="xs"
          aria-label="Which environments"
          value={shown}
          onChange={({ currentTarget: { value } }) =>
            void navigate({
              search: (before) => ({ ...before, archived: value === "all" ? undefined : value }),
              replace: true,
            })
          }
          data={Object.entries(SHOWN).map(([value, [, label]]) => ({ value, label }))}
        />
      </div>
      <Problem error={(archive.submittedAt > unarchive.submittedAt ? archive : unarchive).error} />
      <Loaded reading={environments}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.environments);
          if (rows.length === 0) return <NoEnvironment shown={shown} />;
          return (
            <DataTable
              label="Environments"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(environments)}
              columns={[
                {
                  head: "Name",
                  cell: ({ id, metadata }) => metadata?.name || <code>{id.slice(-8)}</code>,
                },
                { head: "State", cell: (environment) => <StateOf environment={environment} /> },
                { head: "By", cell: ({ metadata }) => <Who subject={metadata?.creator} />, isExtra: true },
                { head: "Created", cell: ({ metadata }) => <Ago at={metadata?.createdAt} />, isExtra: true },
                {
                  head: "Action",
                  cell: (environment) =>
                    mayArchive(environment) && (
                      <ArchiveButton
                        environment={environment}
                        isBusy={[archive, unarchive].some(
                          ({ isPending, variables }) =>
                            isPending && variables?.environmentId === environment.id,
                        )}
                        onArchive={() => archive.mutate({ environmentId: environment.id })}
                        onUnarchive={() => unarchive.mutate({ environmentId: environment.id })}
                      />
                    ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </div>
  );
}

function NoEnvironment({ shown }: { readonly shown: Shown }) {
  if (shown === "yes") return <Empty title="No environment of this project is archived." />;
  if (shown === "no") return <Empty title="This project has no unarchived environment." />;
  return (
    <Empty title="This project has no environment now.">
      <p>Agents and workflows that use the project create environments.</p>
    </Empty>
  );
}

function StateOf({ environment: { metadata, status } }: { readonly environment: Environment }) {
  if (metadata?.archivedAt) {
    return (
      <span className="row">
        <State tone="stopped" word="Archived" /> <Ago at={metadata.archivedAt} />
      </span>
    );
  }
  const [tone, word] = PHASES[status?.phase ?? EnvironmentPhase.UNSPECIFIED];
  return <State tone={tone} word={word} />;
}

interface ArchiveButtonProps {
  readonly environment: Environment;
  readonly isBusy: boolean;
  readonly onArchive: () => void;
  readonly onUnarchive: () => void;
}

/** Archives a stopped environment, or unarchives it. */
function ArchiveButton({ environment, isBusy, onArchive, onUnarchive }: ArchiveButtonProps) {
  const { metadata, status } = environment;
  const isArchived = metadata?.archivedAt !== undefined;
  if (!isArchived && status?.phase !== EnvironmentPhase.STOPPED) return null;
  return (
    <div className="row-actions">
      <Button
        className="button-wide"
        variant="default"
        size="xs"
        loading={isBusy}
        onClick={isArchived ? onUnarchive : onArchive}
      >
        {isArchived ? "Unarchive" : "Archive"}
      </Button>
    </div>
  );
}
