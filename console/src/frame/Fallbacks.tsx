import { Button } from "@mantine/core";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { Empty, Page } from "../parts/Page.tsx";
import { PageNotLoaded, reloadWhereReachable } from "./not-loaded.ts";

/** Says that no page has this address. */
export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="There is no page at this address.">
        <Link to="/">Go home</Link>
      </Empty>
    </Page>
  );
}

/** Milliseconds between two checks whether the server is back. */
const LOOK_MS = 3_000;

/** Says that a page could not be rendered or loaded. If it could not be loaded, it appears once the server is back. */
export function Failed({ error, reset }: ErrorComponentProps) {
  if (error instanceof PageNotLoaded) return <NotLoaded />;
  return (
    <Page title="Something went wrong">
      <div className="problem" role="alert">
        <p>
          The page could not be drawn: {error instanceof Error ? error.message : String(error)}. This is an
          error in Chartroom. It changed nothing.
        </p>
        <Button variant="default" size="xs" onClick={reset}>
          Try again
        </Button>
      </div>
    </Page>
  );
}

function NotLoaded() {
  const [isLooking, setLooking] = useState(false);
  useEffect(() => {
    const look = () => void reloadWhereReachable(false);
    look();
    const timer = window.setInterval(look, LOOK_MS);
    return () => window.clearInterval(timer);
  }, []);
  return (
    <Page title="This page could not be loaded">
      <div className="problem" role="alert">
        <p>
          The server did not answer. It may be restarting, or the network is down. The page appears once it
          answers.
        </p>
        <Button
          variant="default"
          size="xs"
          loading={isLooking}
          onClick={async () => {
            setLooking(true);
            if (!(await reloadWhereReachable(true))) setLooking(false);
          }}
        >
          Try again
        </Button>
      </div>
    </Page>
  );
}

/** Replaces what opens over the page when it could not be loaded. */
export function NotOpened({ onClose }: { readonly onClose: () => void }) {
  return (
    <p className="bar bar-asks row" role="alert">
      This could not be loaded because the server did not answer. Try again in a moment.
      <Button variant="default" size="compact-xs" onClick={onClose}>
        Close
      </Button>
    </p>
  );
}
