/** Says that the script of a page could not be loaded: the server is stopped, or has those of another release. */
export class PageNotLoaded extends Error {}

/** Imports the script of a page; the router, which knows its own errors, leaves those of this one to Failed. */
export const pageScript = <M>(load: () => Promise<M>) => {
  return (): Promise<M> =>
    load().catch((cause: unknown) => {
      throw new PageNotLoaded("The page could not be loaded.", { cause });
    });
};

/** Milliseconds in which a page is loaded again only once. */
const ONCE_MS = 30_000;
const NAME = "reloaded";

/**
 * Loads the page of the address as a whole where the server answers, whose upgrade may have renamed the scripts.
 *
 * @param isAsked whether a person asks for it; else it is not done twice in a row
 * @returns false where it is not done
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
