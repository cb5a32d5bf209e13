import { Icon, type IconName } from "./Icon.tsx";

/** The meaning of a colour; an icon and a word always accompany it. */
export type Tone = "waiting" | "running" | "asks" | "done" | "failed" | "stopped";

const ICONS: Readonly<Record<Tone, IconName>> = {
  waiting: "waiting",
  running: "running",
  asks: "asks",
  done: "done",
  failed: "failed",
  stopped: "stopped",
};

/** Shows a state as an icon and a word in its colour. */
export function State({ tone, word }: { readonly tone: Tone; readonly word: string }) {
  return (
    <span className={`state tone-${tone}`}>
      <Icon name={ICONS[tone]} size={14} />
      <span>{word}</span>
    </span>
  );
}
