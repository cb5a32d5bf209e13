import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Failed, NotFound } from "./frame/Fallbacks.tsx";
import { Frame } from "./frame/Frame.tsx";
import { pageScript } from "./frame/not-loaded.ts";
import { Home } from "./pages/Home.tsx";
import type { ProjectsSearch } from "./pages/projects/project-filters.ts";

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: Failed });

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

const tabOf = (search: Record<string, unknown>): { tab?: string | undefined } => ({ tab: text(search.tab) });

const home = createRoute({ getParentRoute: () => root, path: "/", component: Home });

const account = createRoute({
  getParentRoute: () => root,
  path: "/account",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/account/Account.tsx")),
    "Account",
  ),
  validateSearch: tabOf,
});

const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/agents/Agents.tsx")),
    "Agents",
  ),
  validateSearch: tabOf,
});

/** The search parameters of a run's page. */
interface RunSearch {
  readonly tab?: string | undefined;
  /** `split` shows old and new lines next to each other. */
  readonly diff?: string | undefined;
  /** `turn` compares with the last turn. */
  readonly base?: string | undefined;
  /** The digest of the shown diff. */
  readonly digest?: string | undefined;
}

const run = createRoute({
  getParentRoute: () => root,
  path: "/agents/$runId",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/agents/run/Run.tsx")),
    "Run",
  ),
  validateSearch: (search): RunSearch => ({
    ...tabOf(search),
    diff: text(search.diff),
    base: text(search.base),
    digest: text(search.digest),
  }),
});

const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/approvals/Approvals.tsx")),
    "Approvals",
  ),
  validateSearch: tabOf,
});

const approval = createRoute({
  getParentRoute: () => root,
  path: "/approvals/$approvalId",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/approvals/Approvals.tsx")),
    "ApprovalPage",
  ),
});

const projects = createRoute({
  getParentRoute: () => root,
  path: "/projects",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/projects/Projects.tsx")),
    "Projects",
  ),
  validateSearch: (search): ProjectsSearch => ({
    q: text(search.q),
    sort: text(search.sort),
    on: text(search.on),
    runner: text(search.runner),
    by: text(search.by),
    repository: text(search.repository),
    annotation: text(search.annotation),
  }),
});

const project = createRoute({
  getParentRoute: () => root,
  path: "/projects/$projectId",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/projects/Project.tsx")),
    "Project",
  ),
  validateSearch: (search): { tab?: string | undefined; archived?: string | undefined } => ({
    ...tabOf(search),
    archived: text(search.archived),
  }),
});

const runners = createRoute({
  getParentRoute: () => root,
  path: "/runners",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/runners/Runners.tsx")),
    "Runners",
  ),
});

const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/workflows/Workflows.tsx")),
    "Workflows",
  ),
  validateSearch: (search): { q?: string | undefined; tab?: string | undefined } => ({
    ...tabOf(search),
    q: text(search.q),
  }),
});

const newWorkflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/new",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/workflows/NewWorkflow.tsx")),
    "NewWorkflow",
  ),
});

const workflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$workflowId",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/workflows/Workflow.tsx")),
    "Workflow",
  ),
  validateSearch: (search): { tab?: string | undefined; verdict?: string | undefined } => ({
    ...tabOf(search),
    verdict: text(search.verdict),
  }),
});

const executions = createRoute({
  getParentRoute: () => root,
  path: "/executions",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/executions/Executions.tsx")),
    "Executions",
  ),
  validateSearch: (search): { q?: string | undefined; tab?: string | undefined } => ({
    ...tabOf(search),
    q: text(search.q),
  }),
});

/** The search parameters of an execution's page. */
interface ExecutionSearch {
  readonly tab?: string | undefined;
  /** The action shown below the board, and its step. */
  readonly action?: string | undefined;
  readonly step?: number | undefined;
  /** The text that outputs must contain, the output to sort by, and `desc` to reverse the order. */
  readonly q?: string | undefined;
  readonly sort?: string | undefined;
  readonly order?: string | undefined;
}

const execution = createRoute({
  getParentRoute: () => root,
  path: "/executions/$executionId",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/executions/Execution.tsx")),
    "Execution",
  ),
  validateSearch: (search): ExecutionSearch => ({
    ...tabOf(search),
    action: text(search.action),
    step: typeof search.step === "number" ? search.step : undefined,
    q: text(search.q),
    sort: text(search.sort),
    order: text(search.order),
  }),
});

/** The search parameters of the organization's page. */
interface OrganizationSearch {
  readonly tab?: string | undefined;
  /** The group or service account shown. */
  readonly id?: string | undefined;
  /** The search for members. */
  readonly q?: string | undefined;
  /** The state that a webhook's ledger is filtered by. */
  readonly state?: string | undefined;
  /** Filters of the audit log. */
  readonly by?: string | undefined;
  readonly of?: string | undefined;
  readonly action?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const organization = createRoute({
  getParentRoute: () => root,
  path: "/organization",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/organization/Organization.tsx")),
    "Organization",
  ),
  validateSearch: (search): OrganizationSearch => ({
    ...tabOf(search),
    id: text(search.id),
    q: text(search.q),
    state: text(search.state),
    by: text(search.by),
    of: text(search.of),
    action: text(search.action),
    from: text(search.from),
    to: text(search.to),
  }),
});

const join = createRoute({
  getParentRoute: () => root,
  path: "/organization/join",
  component: lazyRouteComponent(
    pageScript(() => import("./pages/organization/Join.tsx")),
    "Join",
  ),
});

/** All addresses of the console. The server serves those whose first part it knows (src/http/console). */
export const router = createRouter({
  routeTree: root.addChildren([
    home,
    agents,
    run,
    workflows,
    newWorkflow,
    workflow,
    executions,
    execution,
    approvals,
    approval,
    projects,
    project,
    runners,
    organization,
    join,
    account,
  ]),
  // A page that fails keeps its frame.
  defaultErrorComponent: Failed,
  defaultPreload: "intent",
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
