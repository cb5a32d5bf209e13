import { useEffect } from "react";
import { queries } from "./server.tsx";
import { signInAgain } from "./session.ts";

/** The sign-in page also uses it to announce that somebody has signed in or out. */
const channel = new BroadcastChannel("chartroom-session");

/** Notifies the other tabs of the browser that its session has ended or another has begun. */
export const tellTabs = (): void => channel.postMessage("changed");

signInAgain.subscribe(() => {
  if (signInAgain.get()) tellTabs();
});

/** Reads who is signed in again when another tab announces that the session changed. */
export function useOtherTabs(): void {
  useEffect(() => {
    const listen = () =>
      void queries.invalidateQueries({
        predicate: ({ queryKey }) => {
          const [, key] = queryKey as readonly [string, { readonly methodName?: string }?];
          return key?.methodName === "GetAuthenticatedUser";
        },
      });
    channel.addEventListener("message", listen);
    return () => channel.removeEventListener("message", listen);
  }, []);
}
