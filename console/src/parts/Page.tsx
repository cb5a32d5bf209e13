import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

interface PageProps {
  readonly title: string;
  /** Shown after the title, such as the phase. */
  readonly mark?: ReactNode;
  /** Who, when, where. */
  readonly facts?: ReactNode;
  /** The one main action, and the menu of the rest. */
  readonly actions?: ReactNode;
  /** Takes the whole window, as boards and diffs do. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}

/** Frames the content of a page: one header, and the title of the window. */
export function Page({ title, mark, facts, actions, wide = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Chartroom`;
  }, [title]);
  return (
    <div className={wide ? "page wide" : "page"}>
      <header className="page-head">
        <div className="page-title">
          <h1>{title}</h1>
          {/* Readers of screens say what becomes of it. */}
          {mark && <span role="status">{mark}</span>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
        {facts && <div className="page-facts dim">{facts}</div>}
      </header>
      {children}
    </div>
  );
}

/** A part of a page under a heading. */
export function Section({
  title,
  count,
  more,
  children,
}: {
  readonly title: string;
  readonly count?: number | undefined;
  readonly more?: ReactNode;
  readonly children: ReactNode;
}) {
  return (
    <section className="section" aria-label={title}>
      <div className="section-head">
        <h2>
          {title}
          {count !== undefined && count > 0 && <span className="count figures">{count}</span>}
        </h2>
        {more}
      </div>
      {children}
    </section>
  );
}

/** Says what would be in an empty list, and how to get the first one. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="dim">{children}</div>}
    </div>
  );
}

/** Scrolls a row of tabs that is wider than the window to the one that is shown; the page itself stays where it is. */
function showChosen(row: HTMLElement): void {
  const tab = row.querySelector("[data-active]")?.getBoundingClientRect();
  if (!tab) return;
  const { left, right } = row.getBoundingClientRect();
  if (tab.left < left) row.scrollLeft -= left - tab.left;
  else if (tab.right > right) row.scrollLeft += tab.right - right;
}

/** Tabs of a detail page, each of which is an address: `tab` in the query of the page. */
export function TabLinks({
  tabs,
  current,
  keep = [],
}: {
  readonly tabs: readonly (readonly [value: string, label: ReactNode])[];
  readonly current: string;
  /** What in the address is of several tabs; all else is of one alone. */
  readonly keep?: readonly string[];
}) {
  const row = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is shown
  useEffect(() => {
    const { current: element } = row;
    if (!element) return;
    showChosen(element);
    // The window may become narrower than the row later.
    const observer = new ResizeObserver(() => showChosen(element));
    observer.observe(element);
    return () => observer.disconnect();
  }, [current]);
  return (
    <nav className="tabs" aria-label="Parts of this page" ref={row}>
      {tabs.map(([value, label], at) => (
        <Link
          key={value}
          to="."
          search={(before: Record<string, unknown>) => ({
            ...Object.fromEntries(keep.map((name) => [name, before[name]])),
            tab: at === 0 ? undefined : value,
          })}
          className="tab"
          aria-current={value === current ? "page" : undefined}
          data-active={value === current || undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}
