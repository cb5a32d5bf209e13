import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef } from "react";

interface PageProps {
  readonly title: string;
  /** Shown after the title, such as the phase. */
  readonly mark?: ReactNode;
  /** Who, when, where. */
  readonly facts?: ReactNode;
  /** The main action, and the menu of the others. */
  readonly actions?: ReactNode;
  /** Uses the whole window, as boards and diffs do. */
  readonly wide?: boolean;
  readonly children: ReactNode;
}

/** Renders a page: its header, its content, and the title of the window. */
export function Page({ title, mark, facts, actions, wide = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Chartroom`;
  }, [title]);
  return (
    <div className={wide ? "page wide" : "page"}>
      <header className="page-head">
        <div className="page-title">
          <h1>{title}</h1>
          {/* Screen readers announce changes. */}
          {mark && <span role="status">{mark}</span>}
        </div>
        {actions && <div className="page-actions">{actions}</div>}
        {facts && <div className="page-facts dim">{facts}</div>}
      </header>
      {children}
    </div>
  );
}

/** A section of a page, with a heading. */
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

/** Says what an empty list would contain, and how to get the first entry. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children && <div className="dim">{children}</div>}
    </div>
  );
}

/** Scrolls a row of tabs that is wider than the window to the current tab, without scrolling the page. */
function showChosen(row: HTMLElement): void {
  const tab = row.querySelector("[data-active]")?.getBoundingClientRect();
  if (!tab) return;
  const { left, right } = row.getBoundingClientRect();
  if (tab.left < left) row.scrollLeft -= left - tab.left;
  else if (tab.right > right) row.scrollLeft += tab.right - right;
}

/** Tabs of a detail page. Each has an address: `tab` in the page's query. */
export function TabLinks({
  tabs,
  current,
  keep = [],
}: {
  readonly tabs: readonly (readonly [value: string, label: ReactNode])[];
  readonly current: string;
  /** Query parameters that several tabs share; all others belong to one tab. */
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
