import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { Failed, NotFound } from "./frame/Fallbacks.tsx";
import { Frame } from "./frame/Frame.tsx";
import { Home } from "./pages/Home.tsx";

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound, errorComponent: Failed });

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

const home = createRoute({ getParentRoute: () => root, path: "/", component: Home });

const account = createRoute({
  getParentRoute: () => root,
  path: "/account",
  component: lazyRouteComponent(() => import("./pages/account/Account.tsx"), "Account"),
  validateSearch: (search): { tab?: string | undefined } => ({ tab: text(search.tab) }),
});

/** Every address of the console; the server answers those whose first part it knows (src/http/console). */
export const router = createRouter({
  routeTree: root.addChildren([home, account]),
  defaultPreload: "intent",
  defaultPreloadStaleTime: 0,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
