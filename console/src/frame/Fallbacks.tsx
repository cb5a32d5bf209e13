import type { ErrorComponentProps } from "@tanstack/react-router";
import { Link } from "@tanstack/react-router";
import { Empty, Page } from "../parts/Page.tsx";
import { Problem } from "../parts/Problem.tsx";

/** Says that no page has the address. */
export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="There is no page at this address.">
        <Link to="/">Go home</Link>
      </Empty>
    </Page>
  );
}

/** Says that a page could not be drawn. */
export function Failed({ error, reset }: ErrorComponentProps) {
  return (
    <Page title="Something went wrong">
      <Problem error={error} onRetry={reset} />
    </Page>
  );
}
