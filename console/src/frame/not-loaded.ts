/**
 * The error for a page whose script could not be loaded: the server is stopped, or has the scripts of another
 * release.
 */
export class PageNotLoaded extends Error {}

/** Imports the script of a page. The router handles its own errors, but leaves this one to Failed. */
export const pageScript = <M>(load: () => Promise<M>) => {
  return (): Promise<M> =>
    load().catch((cause: unknown) => {
      throw new PageNotLoaded("The page could not be loaded.", { cause });
    });
};

/** Milliseconds in which the page is reloaded only once. */
const ONCE_MS = 30_000;
const NAME = "reloaded";

/**
 * Reloads the whole page if the server responds: an upgrade may have renamed the scripts.
 *
 * @param isAsked true when a person asks for it; otherwise it is not done twice in a row
 * @returns false when it was not done
 */
export async function reloadWhereReachable(isAsked: boolean): Promise<boolean> {
  const before = Number(sessionStorage.getItem(NAME) ?? 0);
  if (!isAsked && Date.now() - before < ONCE_MS) return false;
  try {
    const { ok } = await fetch("/", { cache: "no-store" });
    if (!ok) return false;
  } catch {
    return false;
  }
  sessionStorage.setItem(NAME, String(Date.now()));
  location.reload();
  return true;
}
