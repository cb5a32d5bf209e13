import { findViolations } from "@chartroom/api/rules.js";
import { EventService } from "@chartroom/api/service/v1/event_service_pb.js";
import { GetProjectRequestSchema, ProjectService } from "@chartroom/api/service/v1/project_service_pb.js";
import { Code, ErrorReason, failureOf } from "@chartroom/client";

/** Returns what is done with the packages, in Node and in a page. @param onWatching is called when a stream is open */
export function scenarios(chartroom, onWatching) {
  const projects = chartroom.service(ProjectService);
  const create = async (name) => {
    const remoteUri = `https://git.example.org/team/${name}.git`;
    const initializer = { specs: [{ spec: { case: "git", value: { remoteUri } } }] };
    return (await projects.createProject({ initializer })).project;
  };
  const names = (listed) => listed.map(({ metadata }) => metadata.name);
  return {
    create: async () => ({ name: (await create("created")).metadata.name }),

    /** Walks five projects in pages of two, and one by one. */
    async list() {
      for (let number = 0; number < 5; number++) await create(`listed-${number}`);
      const request = { sort: { field: "id" }, pagination: { pageSize: 2 } };
      const [pages, all] = [[], []];
      for await (const page of chartroom.pages(ProjectService.method.listProjects, request)) {
        pages.push(names(page.projects));
      }
      for await (const project of chartroom.list(ProjectService.method.listProjects, request))
        all.push(project);
      return { pages, all: names(all) };
    },

    async error() {
      const thrown = await projects.getProject({ projectId: "x" }).catch((error) => error);
      const { code, reason, violations } = failureOf(thrown);
      return {
        code: Code[code],
        isViolation: reason === ErrorReason.CONSTRAINT_VIOLATED,
        violations,
        ownViolations: findViolations(GetProjectRequestSchema, { projectId: "x" }),
      };
    },

    /** Watches while the connection is cut, and creates a project in between. */
    async stream() {
      const first = (await create("first")).id;
      const events = [];
      let interruptions = 0;
      let creating;
      const onInterrupted = () => {
        interruptions += 1;
        creating ??= create("second");
      };
      const request = { afterSequence: 0n };
      for await (const event of chartroom.watch(EventService.method.watchEvents, request, {
        onInterrupted,
      })) {
        events.push({ sequence: Number(event.sequence), resourceId: event.resourceId });
        if (event.resourceId === first) onWatching();
        if (event.resourceId === (await creating)?.id) break;
      }
      return { events, projects: [first, (await creating).id], interruptions };
    },

    async deadline() {
      const watch = async () => {
        const events = chartroom.service(EventService).watchEvents({}, { timeoutMs: 500 });
        for await (const event of events) if (event.sequence < 0n) return;
      };
      return { code: Code[failureOf(await watch().catch((error) => error)).code] };
    },

    version: () => chartroom.serverVersion(),
  };
}
