/** One of the things that sh can be in the middle of; they nest, each in a stack of its own. */
export type ShellFrame =
  | CommandFrame
  | BracesFrame
  | ArithmeticFrame
  | HereDocumentFrame
  | { readonly kind: "comment" | "single" | "double" | "ansi" | "backquotes" | "quotesInBraces" };

/** The program itself, or the one inside `$( )`: there quoting starts anew. */
export interface CommandFrame {
  readonly kind: "command";
  /** Whether it stands in `$( )`, so that a `)` ends it. */
  readonly substituted: boolean;
  /** What a `)` belongs to before it can end the frame, innermost last. */
  readonly open: (Subshell | CaseClause)[];
  /** Here-documents that begin after the next newline. */
  readonly awaited: HereDocument[];
  /** Whether the next word is one where reserved words count. */
  atCommand: boolean;
  /** Whether the next word is the name of a `for`. */
  atName: boolean;
  /** Where the word begins that is being read; undefined between words. */
  wordStart: number | undefined;
  /** Whether that word has no quotes and no expansions so far. */
  plain: boolean;
}

export interface Subshell {
  readonly kind: "subshell";
}

/** `case subject in pattern) ... ;; esac`, and which part of it comes next. */
export interface CaseClause {
  readonly kind: "case";
  awaits: "subject" | "in" | "pattern" | "parenthesis" | "end";
}

/** The word in `${name:-word}` and its kin. */
export interface BracesFrame {
  readonly kind: "braces";
  /** How quotes in the word are read; "untold" where shells read them in different ways. */
  readonly word: "unquoted" | "doubleQuoted" | "untold";
}

/** `$(( ))`. */
export interface ArithmeticFrame {
  readonly kind: "arithmetic";
  /** How many parentheses are open inside. */
  depth: number;
}

/** A here-document as its operator announces it. */
export interface HereDocument {
  /** The line that ends it. */
  readonly delimiter: string;
  /** Whether any part of the delimiter is quoted: then nothing in the body is substituted. */
  readonly quoted: boolean;
  /** Whether `<<-` announced it: tabs before each line, and before the delimiter, do not count. */
  readonly stripsTabs: boolean;
}

/** The body of a here-document. */
export interface HereDocumentFrame {
  readonly kind: "hereDocument";
  /** Whether its delimiter is quoted, so that nothing in it is substituted. */
  readonly quoted: boolean;
  /** Where the line of the delimiter begins, and where the text after it does. */
  readonly end: number;
  readonly resume: number;
}

/** A program, or one in `$( )`, of which nothing is read yet. */
export function commandFrame(substituted: boolean): CommandFrame {
  return {
    kind: "command",
    substituted,
    open: [],
    awaited: [],
    atCommand: true,
    atName: false,
    wordStart: undefined,
    plain: true,
  };
}
