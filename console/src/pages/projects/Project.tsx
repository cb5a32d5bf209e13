import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import { ProjectPhase } from "#gen/service/v1/project_pb.js";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { Who } from "../../api/person.tsx";
import { queries } from "../../api/server.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Page, TabLinks } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { useMayChange } from "../organization/may-change.ts";
import { Sharing } from "../sharing/Sharing.tsx";
import { ProjectClasses } from "./ProjectClasses.tsx";
import { ProjectEditors } from "./ProjectEditors.tsx";
import { ProjectEnvironments } from "./ProjectEnvironments.tsx";
import { ProjectPrebuilds } from "./ProjectPrebuilds.tsx";
import { ProjectSettings } from "./ProjectSettings.tsx";
import { sourceOf } from "./source.ts";

const TABS = [
  ["environments", "Environments"],
  ["classes", "Classes"],
  ["prebuilds", "Prebuilds"],
  ["editors", "Editors"],
  ["settings", "Settings"],
  ["sharing", "Sharing"],
] as const;

/** Shows one project: its environments, what they run on, and who may use it. */
export function Project() {
  const { projectId } = useParams({ from: "/projects/$projectId" });
  const { tab = "environments" } = useSearch({ from: "/projects/$projectId" });
  const navigate = useNavigate();
  const reading = useQuery(ProjectService.method.getProject, { projectId });
  const remove = useMutation(ProjectService.method.deleteProject, {
    async onSuccess() {
      await navigate({ to: "/projects" });
      void queries.invalidateQueries();
    },
  });
  const project = reading.data?.project;
  const mayChange = useMayChange({
    creator: project?.metadata?.creator,
    resourceType: ResourceType.PROJECT,
    resourceId: project?.id ?? "",
  });
  if (!project) {
    return (
      <Page title="Project">
        <Loaded reading={reading}>{() => null}</Loaded>
      </Page>
    );
  }
  const { metadata, usedBy } = project;
  const users = usedBy?.totalSubjects ?? 0;
  const isEnding = project.desiredPhase === ProjectPhase.DELETED;
  return (
    <Page
      title={metadata?.name ?? "Project"}
      mark={isEnding && <State tone="stopped" word="Being deleted" />}
      facts={
        <>
          <code>{sourceOf(project)}</code>
          <span>
            created by <Who subject={metadata?.creator} />, changed <Ago at={metadata?.updatedAt} />
          </span>
          <span>
            used by {users.toLocaleString()} {users === 1 ? "user" : "users"}
          </span>
          {mayChange === false && <span>Only its creator and administrators can change or delete it.</span>}
        </>
      }
      actions={
        mayChange && (
          <ConfirmButton
            label="Delete project"
            question="No new environment can be created from it. Existing environments keep running, and the project is removed with the last one."
            disabled={isEnding}
            onConfirm={() => remove.mutate({ projectId })}
            isBusy={remove.isPending}
          />
        )
      }
    >
      <Problem error={reading.error ?? remove.error} />
      <TabLinks current={tab} tabs={TABS} />
      {tab === "environments" && <ProjectEnvironments projectId={projectId} />}
      {tab === "classes" && (
        <ProjectClasses key={project.id} project={project} onSaved={() => void reading.refetch()} />
      )}
      {tab === "prebuilds" && <ProjectPrebuilds project={project} mayChange={mayChange === true} />}
      {tab === "editors" && (
        <ProjectEditors key={project.id} project={project} onSaved={() => void reading.refetch()} />
      )}
      {tab === "settings" && (
        <ProjectSettings key={project.id} project={project} mayChange={mayChange === true} />
      )}
      {tab === "sharing" && (
        <Sharing
          resourceType={ResourceType.PROJECT}
          resourceId={projectId}
          use="create environments and start runs from it"
        />
      )}
    </Page>
  );
}
