import {
  createCSSVariablesTheme,
  type DiffLineAnnotation,
  type FileDiffMetadata,
  type FileDiffOptions,
  getFiletypeFromFileName,
  getSharedHighlighter,
  processFile,
  registerCustomTheme,
  setCustomExtension,
  VirtualizedFileDiff,
  Virtualizer,
} from "@pierre/diffs";
import { WorkerPoolManager } from "@pierre/diffs/worker";
import { focusedRow } from "./label-rows.ts";
import { languageOf, MORE_FILES } from "./languages.ts";

/** The theme whose colours are variables of work.css. Diffs use it to match the theme of the page. */
const THEME = "chartroom";
registerCustomTheme(
  THEME,
  () =>
    Promise.resolve(createCSSVariablesTheme({ name: THEME, variablePrefix: "--word-", fontStyle: false })),
  "diffs",
);

for (const [ending, language] of Object.entries(MORE_FILES)) setCustomExtension(ending, language as "text");

/** Height of a line in pixels, and pixels to render above and below the visible part: fewer than 200 rows in total. */
const LINE_HEIGHT = 20;
const SPARE_HEIGHT = 600;

/** One worker thread for syntax highlighting. It starts with the first diff. */
const pool = new WorkerPoolManager(
  {
    workerFactory: () =>
      new Worker(new URL("@pierre/diffs/worker/worker.js", import.meta.url), { type: "module" }),
    poolSize: 1,
    onWorkerError: (event) => event.preventDefault(),
  },
  { theme: THEME, preferredHighlighter: "shiki-js" },
);

/** Resolves once diffs can be rendered, still without syntax colours. */
export const drawable = getSharedHighlighter({
  themes: [THEME],
  langs: ["text"],
  preferredHighlighter: "shiki-js",
});

/** Resolves to whether the worker has started; without it diffs have no syntax colours. */
export const colours: Promise<boolean> = pool.initialize().then(
  () => pool.isWorkingPool(),
  () => false,
);

/** Returns a patch of one file ready to be rendered, with the syntax colours for its path or without colours. */
export function parse(patch: string, path: string, isColoured: boolean): FileDiffMetadata | undefined {
  const diff = processFile(patch, { isGitDiff: false, disableLineMatching: true });
  if (diff) diff.lang = isColoured ? languageOf(getFiletypeFromFileName(path)) : "text";
  return diff;
}

/** Renders the visible lines of a diff. */
export class DrawnDiff extends VirtualizedFileDiff<undefined> {
  readonly #root: HTMLElement;

  /** @param redraw called when there is more to render, such as colours: the owner then calls `show` */
  constructor(root: HTMLElement, redraw: () => void) {
    super({ theme: THEME }, virtualizerOf(root), { lineHeight: LINE_HEIGHT }, pool, redraw);
    this.#root = root;
    root.shadowRoot?.adoptedStyleSheets.push(RULES);
  }

  show(
    fileDiff: FileDiffMetadata,
    options: FileDiffOptions<undefined, undefined>,
    lineAnnotations: DiffLineAnnotation<undefined>[],
  ): void {
    this.setOptions({
      theme: THEME,
      preferredHighlighter: "shiki-js",
      disableFileHeader: true,
      diffIndicators: "classic",
      hunkSeparators: "metadata",
      overflow: "wrap",
      ...options,
    });
    this.render({ fileDiff, fileContainer: this.#root, lineAnnotations });
  }

  override render(props?: Parameters<VirtualizedFileDiff["render"]>[0]): boolean {
    // The element that the base class would create lacks the nonce that the content security policy requires.
    this.themeCSSStyle ??= styleElement();
    const refocus = focusedRow(this.#root.shadowRoot);
    const isDrawn = super.render(props);
    refocus?.();
    return isDrawn;
  }
}

/**
 * Our rules for the content of a diff override those of @pierre/diffs, whose backgrounds are too dark for small text.
 */
const RULES = new CSSStyleSheet();
RULES.replaceSync(`
  [data-line-type="change-addition"] { --diffs-computed-diff-line-bg: var(--done-ground); }
  [data-line-type="change-deletion"] { --diffs-computed-diff-line-bg: var(--failed-ground); }
  [data-line-type="change-addition"] [data-diff-span] { background-color: var(--done-mark); }
  [data-line-type="change-deletion"] [data-diff-span] { background-color: var(--failed-mark); }
  [data-selected-line] { --diffs-computed-selected-line-bg: var(--chosen); }
  [data-column-number][data-hovered] { --diffs-computed-hovered-line-bg: var(--chosen); }
  [data-column-number] { scroll-margin: 64px; }
  [data-column-number]:focus-visible { outline: 2px solid var(--focus); outline-offset: -2px; }
  [data-no-newline] { white-space: pre-wrap; }
  [data-no-newline] span { color: var(--dim); opacity: 1; }
`);

function styleElement(): HTMLStyleElement {
  const style = document.createElement("style");
  style.nonce = document.querySelector<HTMLMetaElement>("meta[property='csp-nonce']")?.nonce ?? "";
  style.setAttribute("data-theme-css", "");
  return style;
}

const virtualizers = new WeakMap<Element | Document, Virtualizer>();

/** Returns the virtualizer of an element's scroll container: the page or a dialog. */
function virtualizerOf(element: HTMLElement): Virtualizer {
  let root: Element | Document = document;
  for (let outer = element.parentElement; outer && outer !== document.body; outer = outer.parentElement) {
    if (!/auto|scroll/.test(getComputedStyle(outer).overflowY)) continue;
    root = outer;
    break;
  }
  const found = virtualizers.get(root);
  if (found) return found;
  const made = new Virtualizer({ overscrollSize: SPARE_HEIGHT });
  made.setup(root as HTMLElement | Document);
  virtualizers.set(root, made);
  return made;
}
