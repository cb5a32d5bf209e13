import type { Command } from "commander";
import type { Terminal } from "../definitions/command-line.ts";

/** Width of help without a terminal, or for a terminal of unknown width, in characters. */
const DEFAULT_WIDTH = 80;

/** Maximum width of help: longer lines are tiring to read. */
const MAX_HELP_WIDTH = 120;

/** Minimum width: nothing fits into less. */
const MIN_WIDTH = 20;

/** Descriptions move below their terms when less than this is left next to them. */
const MIN_DESCRIPTION_WIDTH = 30;

/** Indentation of a description below its term. */
const INDENT = 6;

type Width = Pick<Terminal, "env"> & {
  readonly output: Terminal["output"] & { readonly isTTY?: boolean; readonly columns?: number };
};

/** Returns the width of the terminal in characters; Infinity without a terminal, so that nothing is shortened. */
export function widthOf(terminal: Pick<Terminal, "env" | "output">): number {
  const { env, output }: Width = terminal;
  if (!output.isTTY) return Number.POSITIVE_INFINITY;
  return Math.max(output.columns || variableWidth(env) || DEFAULT_WIDTH, MIN_WIDTH);
}

/** Fits the help of a command, and of its subcommands declared later, to the terminal. */
export function fitHelp(program: Command, terminal: Pick<Terminal, "env" | "output">): Command {
  const width = widthOf(terminal);
  const helpWidth = Number.isFinite(width) ? width : variableWidth(terminal.env) || DEFAULT_WIDTH;
  return program.configureHelp({
    showGlobalOptions: true,
    helpWidth: Math.min(Math.max(helpWidth, MIN_WIDTH), MAX_HELP_WIDTH),
    minWidthToWrap: MIN_WIDTH - INDENT,
    formatItem(term, termWidth, description, helper) {
      const maxWidth = helper.helpWidth ?? DEFAULT_WIDTH;
      const columnWidth = maxWidth - termWidth - 4;
      if (description === "") return `  ${term}`;
      if (columnWidth >= MIN_DESCRIPTION_WIDTH) {
        const text = helper.boxWrap(description, columnWidth);
        return `  ${term.padEnd(termWidth)}  ${text.replaceAll("\n", `\n${" ".repeat(termWidth + 4)}`)}`;
      }
      return `  ${term}\n${indented(helper.boxWrap(description, maxWidth - INDENT), INDENT)}`;
    },
  });
}

/** Wraps text like the help of a command, with the indentation on each line. */
export function wrapHelp(command: Command, text: string, indent = 0): string {
  const help = command.createHelp();
  return indented(help.boxWrap(text, (help.helpWidth ?? DEFAULT_WIDTH) - indent), indent);
}

function indented(text: string, indent: number): string {
  return text.replaceAll(/^/gm, " ".repeat(indent));
}

/** Returns the value of COLUMNS; 0 when it is not a width. */
function variableWidth({ COLUMNS = "" }: Terminal["env"]): number {
  return /^\d{1,4}$/.test(COLUMNS) ? Number(COLUMNS) : 0;
}
