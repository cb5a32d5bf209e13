import { Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon.tsx";
import { Problem } from "../parts/Problem.tsx";
import { useFocusBack } from "../parts/use-focus-back.ts";
import { pageActions } from "./page-actions.ts";
import { PLACES } from "./Sidebar.tsx";
import { type Target, useFound } from "./use-found.ts";

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

/** Maximum characters of a search (contract). */
const MAX_SEARCH = 256;

/** Pages that are not in the sidebar. */
const OTHER_PAGES = [
  { key: "executions", label: "Executions", hint: "Page", icon: "workflows", href: "/executions" },
  { key: "new-workflow", label: "Create workflow", hint: "Page", icon: "plus", href: "/workflows/new" },
] as const satisfies readonly Target[];

const PAGES: readonly Target[] = [
  ...PLACES.map(([to, label, icon]) => ({ key: to, label, hint: "Page", icon, href: to })),
  ...OTHER_PAGES,
];

/**
 * Finds anything by its name or id (a page, a project, a workflow, a run, an execution or a member) and offers the
 * page's actions.
 */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
  // Returns the focus to where the person was typing.
  useFocusBack();
  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      padding={0}
      size={560}
      yOffset="12vh"
      transitionProps={{ duration: 120 }}
      attributes={{ content: { "aria-label": "Go to" } }}
    >
      <Search onClose={onClose} />
    </Modal>
  );
}

function Search({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  /** The chosen target; undefined means the first, until a key or the pointer chooses another. */
  const [chosen, setChosen] = useState<string>();
  /** Whether Enter was pressed before the search had results. */
  const [isEntered, setIsEntered] = useState(false);
  const navigate = useNavigate();
  const wanted = text.trim();
  const [search] = useDebouncedValue(wanted, TYPED_MS);
  const found = useFound(wanted === "" ? "" : search);
  const isSearching = wanted !== "" && (search !== wanted || found.isSearching);
  // The actions of the page below, as it was when the palette opened.
  const [actions] = useState(pageActions);
  const isNamed = ({ label }: Target) => label.toLowerCase().includes(wanted.toLowerCase());
  const pages = [
    ...PAGES.filter(isNamed),
    ...actions.filter((action) => isNamed(action) && PAGES.every(({ label }) => label !== action.label)),
  ];
  const targets = [...pages, ...found.targets];
  const at = Math.max(
    0,
    targets.findIndex(({ key }) => key === chosen),
  );
  const current = targets[at];
  const go = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    if (target.href !== undefined) void navigate({ href: target.href });
    // Runs after the palette has closed and returned the focus.
    else if (target.run) window.setTimeout(target.run);
  };
  useEffect(() => {
    if (!isEntered || isSearching) return;
    setIsEntered(false);
    go(current);
  });
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another target is chosen
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [current?.key]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setChosen(targets[Math.max(0, Math.min(targets.length - 1, at + step))]?.key);
    } else if (event.key === "Enter") {
      // Results of an earlier search do not match the current text; pages and an explicit choice do.
      if (isSearching && chosen === undefined && pages.length === 0) setIsEntered(true);
      else go(current);
    }
  };
  return (
    <div className="palette">
      <input
        // biome-ignore lint/a11y/noAutofocus: the palette was opened to type into
        autoFocus
        className="palette-input"
        placeholder="Go to a page, project, workflow, run, execution or member"
        aria-label="Go to"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-targets"
        aria-activedescendant={current && `palette-${current.key}`}
        maxLength={MAX_SEARCH}
        value={text}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(undefined);
          setIsEntered(false);
        }}
      />
      <Problem error={found.error} />
      <div
        id="palette-targets"
        role="listbox"
        aria-label="Places"
        aria-busy={isSearching}
        className="palette-targets"
        ref={list}
      >
        {targets.map((target, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input
          <div
            key={target.key}
            id={`palette-${target.key}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className="palette-target"
            onClick={() => go(target)}
          >
            <Icon name={target.icon} />
            <span className="cut">{target.label}</span>
            <span className="dim small cut">{target.hint}</span>
          </div>
        ))}
      </div>
      <p className="dim small palette-none" role="status">
        {statusText(wanted, isSearching, targets.length)}
      </p>
    </div>
  );
}

function statusText(wanted: string, isSearching: boolean, count: number): string {
  if (isSearching) return "Searching …";
  if (count === 0) return "Nothing matches this name or id.";
  return wanted === ""
    ? "Type a name, an id or an action of this page."
    : "Shows the first of each kind and the newest 100 runs. Type more to find others.";
}
