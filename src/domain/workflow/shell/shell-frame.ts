/**
 * One of the nested constructs of sh that a reader can be inside of, each with its own kind of
 * stack frame.
 */
export type ShellFrame =
  | CommandFrame
  | BracesFrame
  | ArithmeticFrame
  | HereDocumentFrame
  | { readonly kind: "comment" | "single" | "double" | "ansi" | "backquotes" | "quotesInBraces" };

/**
 * The program itself, or the one inside `$( )`, whose quoting is independent of the text around it.
 */
export interface CommandFrame {
  readonly kind: "command";
  /** True inside `$( )`, so that a `)` ends the frame. */
  readonly substituted: boolean;
  /** Constructs that a `)` closes before it can end the frame, innermost last. */
  readonly open: (Subshell | CaseClause)[];
  /** Here-documents that begin after the next newline. */
  readonly awaitedHereDocuments: HereDocument[];
  /** True when the next word is in a position where reserved words count. */
  atCommand: boolean;
  /** True when the next word is the name of a `for`. */
  atName: boolean;
  /** Offset of the word that is being read; undefined between words. */
  wordStart: number | undefined;
  /** True when that word has no quotes and no expansions so far. */
  isLiteral: boolean;
}

export interface Subshell {
  readonly kind: "subshell";
}

/** `case subject in pattern) ... ;; esac`, and the part of it that comes next. */
export interface CaseClause {
  readonly kind: "case";
  awaits: "subject" | "in" | "pattern" | "parenthesis" | "end";
}

/** The word in `${name:-word}` and similar forms. */
export interface BracesFrame {
  readonly kind: "braces";
  /** Quoting of the word; "unknown" where shells differ. */
  readonly word: "unquoted" | "doubleQuoted" | "unknown";
}

/** `$(( ))`. */
export interface ArithmeticFrame {
  readonly kind: "arithmetic";
  /** Number of parentheses that are open inside. */
  depth: number;
}

/** A here-document as its operator announces it. */
export interface HereDocument {
  /** Line that ends it. */
  readonly delimiter: string;
  /** True when any part of the delimiter is quoted, so that nothing in the body is substituted. */
  readonly quoted: boolean;
  /** True for `<<-`: tabs before each line, and before the delimiter, do not count. */
  readonly stripsTabs: boolean;
}

/** The body of a here-document. */
export interface HereDocumentFrame {
  readonly kind: "hereDocument";
  /** True when its delimiter is quoted, so that nothing in it is substituted. */
  readonly quoted: boolean;
  /** Offset of the delimiter's line, and of the text after it. */
  readonly end: number;
  readonly resume: number;
}

/** Returns the frame of an unread program, or of one in `$( )`. */
export function newCommandFrame(substituted: boolean): CommandFrame {
  return {
    kind: "command",
    substituted,
    open: [],
    awaitedHereDocuments: [],
    atCommand: true,
    atName: false,
    wordStart: undefined,
    isLiteral: true,
  };
}
