import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** One clock for all times on the page. It runs once a second while at least one is shown. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Subscribes to a value of the clock. The page renders again only when the value changes. */
export function useClock<T extends string>(read: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => read(now));
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** Returns a duration in its two largest units, such as `3 min 5 s`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const at = UNITS.findIndex(([, length]) => whole >= length);
  if (at === -1) return "0 s";
  const [unit, length] = UNITS[at] ?? UNITS[3];
  const next = UNITS[at + 1];
  const rest = next ? Math.floor((whole % length) / next[1]) : 0;
  return `${Math.floor(whole / length)} ${unit}${next && rest > 0 ? ` ${rest} ${next[0]}` : ""}`;
}

const agoText = (ms: number, now: number): string => {
  const seconds = Math.round((now - ms) / 1000);
  if (Math.abs(seconds) < 10) return "now";
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? UNITS[3];
  const count = Math.floor(Math.abs(seconds) / length);
  return seconds > 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`;
};

/** Returns a time to the second, with its zone. */
const exactText = (date: Date): string =>
  date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Shows a time to the second, with its zone. */
export function Exact({ at }: { readonly at: Timestamp | undefined }) {
  const date = at && timestampDate(at);
  if (!date) return <span className="dim">never</span>;
  return (
    <time dateTime={date.toISOString()} className="figures">
      {exactText(date)}
    </time>
  );
}

/** Shows how long ago a time was or how soon it is; the exact time is in its title. */
export function Ago({ at }: { readonly at: Timestamp | undefined }) {
  const date = at && timestampDate(at);
  const text = useClock((time) => (date ? agoText(date.getTime(), time) : ""));
  if (!date) return <span className="dim">never</span>;
  return (
    <time dateTime={date.toISOString()} title={exactText(date)} className="figures">
      {text}
    </time>
  );
}

/** Shows how long something has taken; counts up while it has no end. */
export function Lasting({
  from,
  to,
}: {
  readonly from: Timestamp | undefined;
  readonly to: Timestamp | undefined;
}) {
  const text = useClock((time) => {
    if (!from) return "";
    const end = to ? timestampDate(to).getTime() : time;
    return durationText((end - timestampDate(from).getTime()) / 1000);
  });
  return <span className="figures">{text}</span>;
}
