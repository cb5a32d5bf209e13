import type { Command } from "commander";
import { BASH_COMPLETION } from "../terminal/bash-completion.ts";
import { type Completion, complete } from "../terminal/completion.ts";
import type { Terminal } from "./command-line.ts";

/** The directives of the completion scripts: what the shell completes where there are no words. */
const DIRECTIVES: Readonly<Record<Completion["fallback"], number>> = { none: 4, files: 0, folders: 16 };

/** Declares `chartroom completion`, and the hidden command that its scripts call. */
export function declareCompletion(program: Command, terminal: Terminal): void {
  program
    .command("completion")
    .description("print a completion script to source in the shell's startup file")
    .addArgument(
      program
        .createArgument("<shell>", "shell to complete in")
        .choices(["zsh", "bash", "fish", "powershell"]),
    )
    .action(async (shell: string) => {
      if (shell === "bash") return terminal.print(BASH_COMPLETION);
      const { script } = await import("@bomb.sh/tab");
      script(shell, "chartroom", "chartroom");
    });
  program
    .command("complete", { hidden: true })
    .description("print completions of a command line: complete -- WORD...")
    .argument("[words...]", "words after the name of the program; the last one is completed")
    .action((words: string[]) => {
      const { words: found, fallback } = complete(program, words);
      const lines = found.map(({ value, description }) =>
        description === "" ? `${value}\n` : `${value}\t${description}\n`,
      );
      const directive = found.length === 0 ? DIRECTIVES[fallback] : DIRECTIVES.none;
      terminal.print(`${lines.join("")}:${directive}\n`);
    });
}
