import { type ComponentType, type ReactNode, useEffect, useState } from "react";

/** What replaces a part of a page until it is loaded. */
interface Instead<P> {
  readonly loading?: ReactNode;
  /** Shown when it could not be loaded, such as while the server is stopped. */
  readonly failed: (props: P) => ReactNode;
}

/**
 * Returns a part of a page that is loaded when it is first shown. After a failure, the next attempt to show it
 * retries.
 */
export function loadedPart<P extends object>(
  load: () => Promise<ComponentType<P>>,
  { loading = null, failed }: Instead<P>,
): (props: P) => ReactNode {
  let found: ComponentType<P> | undefined;
  return function Part(props: P) {
    const [state, setState] = useState<"loading" | "failed" | "there">("loading");
    useEffect(() => {
      if (found) return;
      load().then(
        (loaded) => {
          found = loaded;
          setState("there");
        },
        () => setState("failed"),
      );
    }, []);
    if (found) {
      const Found = found;
      return <Found {...props} />;
    }
    return state === "failed" ? failed(props) : loading;
  };
}
