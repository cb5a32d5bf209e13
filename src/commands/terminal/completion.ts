import type { Argument, Command, Option } from "commander";

/** What may be typed at the cursor. */
export interface Completion {
  /** The words, and what they are about. */
  readonly words: readonly { readonly value: string; readonly description: string }[];
  /** What a shell completes where there are no words. */
  readonly fallback: "none" | "files" | "folders";
}

/** The names of arguments that take a path of this machine. */
const FILE = /^(file|files|paths|place)\b/;
const FOLDER = /^(folder|dir)\b/;

/** Values of options that are checked when they are read, and not by the option. */
const knownValues = new WeakMap<Option, readonly string[]>();

/** Has an option complete these values. */
export function completeWith(option: Option, values: readonly string[]): Option {
  knownValues.set(option, values);
  return option;
}

/**
 * Returns what completes the last of the words of a command line.
 * @param words those behind the name of the program; the last is empty where none is begun
 */
export function complete(program: Command, words: readonly string[]): Completion {
  const { command, option, isHelp, position, areOptionsOver } = read(program, words.slice(0, -1));
  const word = words.at(-1) ?? "";
  if (option && !(option.variadic && word.startsWith("-"))) return valuesOf(option, word);
  const assigned = /^(--[^=]+)=(.*)$/s.exec(word);
  if (assigned) {
    const named = optionOf(command, assigned[1] ?? "");
    return named ? valuesOf(named, assigned[2] ?? "") : NONE;
  }
  if (word.startsWith("-") && !areOptionsOver && !isHelp) return chosen(optionsOf(command), word);
  const commands = position === 0 ? commandsOf(command) : [];
  const argument = isHelp ? undefined : argumentAt(command, position);
  const values = (argument?.argChoices ?? []).map((value) => ({ value, description: "" }));
  const found = chosen([...commands, ...values], word);
  return { ...found, fallback: argument ? fallbackFor(argument.name()) : "none" };
}

const NONE: Completion = { words: [], fallback: "none" };

/** Where the words of a command line lead. */
interface CommandPosition {
  readonly command: Command;
  /** The option whose value is next. */
  readonly option: Option | undefined;
  /** True behind `help`, which takes the names of commands. */
  readonly isHelp: boolean;
  /** Number of arguments before the next. */
  readonly position: number;
  readonly areOptionsOver: boolean;
}

function read(program: Command, words: readonly string[]): CommandPosition {
  let [command, position, isHelp, areOptionsOver] = [program, 0, false, false];
  let option: Option | undefined;
  for (const word of words) {
    if (option && !word.startsWith("-")) {
      if (!option.variadic) option = undefined;
      continue;
    }
    option = undefined;
    if (!areOptionsOver && word === "--") areOptionsOver = true;
    else if (!areOptionsOver && word.startsWith("-")) {
      const named = word.includes("=") ? undefined : optionOf(command, word);
      option = named?.required || named?.optional ? named : undefined;
    } else {
      const child = position === 0 ? command.commands.find((each) => each.name() === word) : undefined;
      if (child) command = child;
      else if (word === "help" && command.commands.length > 0 && position === 0) isHelp = true;
      else position += 1;
    }
  }
  return { command, option, isHelp, position, areOptionsOver };
}

function valuesOf(option: Option, word: string): Completion {
  const values = option.argChoices ?? knownValues.get(option) ?? [];
  const found = chosen(
    values.map((value) => ({ value, description: "" })),
    word,
  );
  const name = /[<[]([^>\]]*)/.exec(option.flags)?.[1] ?? "";
  return { ...found, fallback: fallbackFor(name) };
}

function fallbackFor(name: string): Completion["fallback"] {
  if (FOLDER.test(name)) return "folders";
  return FILE.test(name) ? "files" : "none";
}

function chosen(all: Completion["words"], word: string): Completion {
  return { words: all.filter(({ value }) => value.startsWith(word)), fallback: "none" };
}

function commandsOf(command: Command): Completion["words"] {
  const visible = command.createHelp().visibleCommands(command);
  return visible.map((each) => ({ value: each.name(), description: each.description() }));
}

function optionsOf(command: Command): Completion["words"] {
  const visible = command.createHelp().visibleOptions(command);
  return visible.flatMap(({ short, long, description }) =>
    [long, short].flatMap((value) => (value ? [{ value, description }] : [])),
  );
}

function optionOf(command: Command, flag: string): Option | undefined {
  return command.options.find((option) => option.short === flag || option.long === flag);
}

function argumentAt({ registeredArguments }: Command, position: number): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[position] ?? (last?.variadic ? last : undefined);
}
