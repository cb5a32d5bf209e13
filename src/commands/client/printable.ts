import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

/** Replaces each character that would control the terminal, or reorder or hide text, with a visible one. */
export function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])[\p{Cc}\u{202d}\u{202e}\u{e0000}-\u{e007f}]/gu, "\u{fffd}");
}

/** Returns a time in UTC to the second, such as `2026-11-25 13:24:00`; empty when it is not set. */
export function timeOf(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString().slice(0, 19).replace("T", " ") : "";
}

/** Returns the name of an enum value in words, such as `not loaded`; empty when it is unknown. */
export function enumWords(name: string | undefined): string {
  return (name ?? "").toLowerCase().replaceAll("_", " ");
}

/** Returns a value as JSON for people and programs. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
