/** The doctor's subjects, in the order of its report. */
export type Subject =
  | "settings"
  | "address"
  | "data folder"
  | "disk"
  | "keys"
  | "database"
  | "clock"
  | "runners"
  | "webhooks"
  | "audit export"
  | "local runner"
  | "isolation";

/** One thing that the doctor has found. */
export interface Finding {
  readonly subject: Subject;
  /** "wrong" fails the command; "note" leaves the judgment to the person. */
  readonly level: "ok" | "note" | "wrong";
  /** The finding, without a line break. */
  readonly text: string;
  /** The advice for it. */
  readonly advice?: string;
}

export const ok = (subject: Subject, text: string): Finding => ({ subject, level: "ok", text });

export const note = (subject: Subject, text: string, advice?: string): Finding => ({
  subject,
  level: "note",
  text,
  ...(advice !== undefined && { advice }),
});

export const wrong = (subject: Subject, text: string, advice?: string): Finding => ({
  ...note(subject, text, advice),
  level: "wrong",
});

const LEVEL_WIDTH = 7;
const SUBJECT_WIDTH = 13;

/** Returns the report for the person at the terminal: a line for each finding, one for its advice, and a summary. */
export function reportOf(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ level, subject, text, advice }) => [
    level.padEnd(LEVEL_WIDTH) + subject.padEnd(SUBJECT_WIDTH) + text,
    ...(advice === undefined ? [] : [`${" ".repeat(LEVEL_WIDTH + SUBJECT_WIDTH)}-> ${advice}`]),
  ]);
  const count = findings.filter(({ level }) => level === "wrong").length;
  const sum = count === 0 ? "nothing is wrong" : `${count} ${count === 1 ? "thing is" : "things are"} wrong`;
  return `${[...lines, sum].join("\n")}\n`;
}
