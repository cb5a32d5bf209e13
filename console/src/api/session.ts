import { useSyncExternalStore } from "react";

/** A value outside React that pages can subscribe to. */
function createValue<T>(first: T) {
  let value = first;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next: T) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** Whether the server has rejected the session, so that the person must sign in again. */
export const signInAgain = createValue(false);

/** Subscribes to a value of {@link createValue}. */
export function useValue<T>(value: ReturnType<typeof createValue<T>>): T {
  return useSyncExternalStore(value.subscribe, value.get);
}

export { createValue };

/**
 * Goes to the sign-in page, which leads back to this one. The part after the # can be a secret, such as that of an
 * invite. It is kept in the tab, since the address would send it to the server.
 */
export function goToSignIn(): void {
  const { pathname, search, hash } = location;
  if (hash !== "") sessionStorage.setItem("next", pathname + search + hash);
  location.replace(hash === "" ? signInAddress() : "/sign-in");
}

/** Returns the address of the sign-in page that leads back to this one. */
export const signInAddress = (): string =>
  `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`;
