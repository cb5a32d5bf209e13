/** Paths of the icons in a box of 16 by 16, with a stroke width of 1.5. */
const LINES = {
  home: "M2.5 7.5 8 3l5.5 4.5M4 6.5V13h8V6.5",
  agents: "M3.5 6h9v7h-9zM8 6V3M6 9v1.5M10 9v1.5M1.5 9v2M14.5 9v2",
  workflows: "M2.5 3h4v4h-4zM9.5 9h4v4h-4zM4.5 7v4h5",
  projects: "M2 12.5v-9h4l1.5 2H14v7z",
  approvals: "M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4zM5.8 8l1.6 1.6L10.4 6.5",
  runners: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  organization:
    "M5.5 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM1.5 13c.3-2.2 1.8-3.3 4-3.3s3.7 1.1 4 3.3M10.5 7.5a1.7 1.7 0 1 0 0-3.4M11.5 9.8c1.7.2 2.7 1.2 3 3.2",
  account: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 13.5c.5-2.5 2.5-3.5 5-3.5s4.5 1 5 3.5",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5 14 14",
  light:
    "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8 2v1M8 13v1M2 8h1M13 8h1M4 4l.5.5M11.5 11.5l.5.5M12 4l-.5.5M4.5 11.5 4 12",
  dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  waiting: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3l2 1.5",
  running: "M8 2.5A5.5 5.5 0 1 1 2.5 8",
  asks: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM6.5 6.5c0-2 3-2 3 0 0 1-1.5 1.200-1.5 2.200M8 11h.01",
  done: "M3 8.5 6.5 12 13 4.5",
  failed: "M4 4l8 8M12 4l-8 8",
  stopped: "M4.5 4.5h7v7h-7z",
  read: "M4 2.5h5.5L12 5v8.5H4zM6 7h4M6 9.5h4",
  edit: "M3 13l.5-3L10.5 3 13 5.5 6 12.5z",
  remove: "M3 4.5h10M6 4V2.5h4V4M4.5 4.5l.5 9h6l.5-9",
  execute: "M3 4l4 4-4 4M8.5 12H13",
  fetch: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  think: "M6 13h4M6 11c0-1-2-2-2-4.5a4 4 0 0 1 8 0C12 9 10 10 10 11z",
  tool: "M10 3a3 3 0 0 0-3 4L3 11l2 2 4-4a3 3 0 0 0 4-3l-2 1-1.5-1.5z",
  right: "M6 3.5 10.5 8 6 12.5",
  down: "M3.5 6 8 10.5 12.5 6",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  copy: "M5.5 5.5h7v7h-7zM3.5 10V3.5H10",
  plus: "M8 3v10M3 8h10",
  out: "M6 3H3v10h3M7 8h6.5M11 5.5 13.5 8 11 10.5",
  link: "M6.5 9.5l3-3M7 5l2-2a2.5 2.5 0 0 1 4 4l-2 2M9 11l-2 2a2.5 2.5 0 0 1-4-4l2-2",
  drag: "M6 4h.01M10 4h.01M6 8h.01M10 8h.01M6 12h.01M10 12h.01",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof LINES;

/** Draws an icon. It is hidden from screen readers, because a word next to it says the same. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={LINES[name]} />
    </svg>
  );
}
