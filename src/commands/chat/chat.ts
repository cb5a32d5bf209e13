import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { warnOnce } from "../client/server-access.ts";
import { StartError } from "../start-error.ts";
import { ConversationClient, type ConversationOptions } from "./conversation-client.ts";
import { Screen } from "./screen.ts";
import { parseTypedLine } from "./typed-line.ts";
import { ChatView } from "./view.ts";

export interface ChatOptions extends ConversationOptions {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Writable;
  /** True for a terminal without control sequences: it gets plain lines and edits typed lines itself. */
  readonly isDumb?: boolean;
}

/** Clears the terminal from the start of the row. The line being typed is printed again below the output. */
const CLEAR = "\r\u{1b}[J";

/**
 * Shows an agent's execution live and sends it the typed lines, until the execution stops or the user leaves. With
 * input from a pipe, leaves after the answer to the last line.
 *
 * @returns whether the execution is still open or has ended well
 * @throws StartError when the execution cannot be watched, the server was unreachable for too long, or the user
 *   leaves while it is unreachable
 */
export async function chat({ input, output, isDumb = false, ...place }: ChatOptions): Promise<boolean> {
  const isTyped = input.isTTY === true;
  const isEdited = isTyped && !isDumb;
  const leaving = new AbortController();
  const lines = createInterface({
    input,
    ...(isEdited ? { output, terminal: true } : { terminal: false }),
    prompt: "> ",
  });
  const print = (text: string) => {
    if (!isEdited) return output.write(text);
    // A long line takes several rows. Before it prints the line again, readline moves up by the rows that it knows
    // of, which exclude those of a paste.
    const { rows } = lines.getCursorPos();
    const { prevRows = rows } = lines as { readonly prevRows?: number };
    output.write(`${rows > 0 ? `\u{1b}[${rows}A` : ""}${CLEAR}${text}${"\n".repeat(prevRows)}`);
    return lines.prompt(true);
  };
  const view = new ChatView(print, () => "/retry, or /go-on");
  // Print it as a chat line: writing to stderr could overwrite the row being typed.
  const noteTokenEnd = warnOnce(place, (warning) => view.note(`[${warning}]`));
  const conversation = new ConversationClient({ ...place, noteTokenEnd });
  const screen = new Screen(conversation, view);
  lines.on("SIGINT", () => lines.close());
  const typing = (async () => {
    for await (const line of lines) {
      if (!(await screen.handleLine(parseTypedLine(line)))) return;
    }
    if (!isTyped) await screen.untilAnswered(leaving.signal);
  })().finally(() => leaving.abort());
  // The code below awaits a failure; until then it must not be an unhandled rejection.
  typing.catch(() => undefined);
  try {
    await screen.show(leaving.signal);
  } finally {
    leaving.abort();
    lines.close();
    input.destroy();
  }
  await typing;
  if (conversation.isAway) {
    throw new StartError(
      `the chat was left while the server ${place.server} could not be reached: what was typed last may not have been sent`,
    );
  }
  return screen.isWell;
}
