import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";

interface PageProps {
  readonly title: string;
  /** Stands after the title, such as the phase. */
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
          {mark}
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

/** Scrolls a row of tabs that is wider than the window to the one that is shown. */
const showTab = (tab: HTMLElement | null) => tab?.scrollIntoView({ block: "nearest", inline: "nearest" });

/** Tabs of a detail page, each of which is an address: `tab` in the query of the page. */
export function TabLinks({
  tabs,
  current,
}: {
  readonly tabs: readonly (readonly [value: string, label: ReactNode])[];
  readonly current: string;
}) {
  return (
    <nav className="tabs" aria-label="Parts of this page">
      {tabs.map(([value, label], at) => (
        <Link
          key={value}
          to="."
          search={(before: Record<string, unknown>) => ({ ...before, tab: at === 0 ? undefined : value })}
          className="tab"
          aria-current={value === current ? "page" : undefined}
          data-active={value === current || undefined}
          ref={value === current ? showTab : undefined}
          replace
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}
