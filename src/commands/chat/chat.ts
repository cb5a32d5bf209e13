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
  /** True for a terminal that takes no control sequences: it gets plain lines, and edits what is typed itself. */
  readonly isDumb?: boolean;
}

/** Clears the terminal from the beginning of the row. The line being typed appears again below the output. */
const CLEAR = "\r\u{1b}[J";

/**
 * Shows an agent's execution in progress and sends it the typed lines, until the
 * execution stops or the user leaves. Input from a pipe is left at its end, after
 * the answer to its last line.
 *
 * @returns whether the execution is still open or has ended well
 * @throws StartError when the execution cannot be watched, the server could not
 *   be reached for too long, or the user leaves while it cannot be reached
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
    // A long line takes several rows. Before readline prints it again it moves up by the rows that it
    // knows of: not those of a paste.
    const { rows } = lines.getCursorPos();
    const { prevRows = rows } = lines as { readonly prevRows?: number };
    output.write(`${rows > 0 ? `\u{1b}[${rows}A` : ""}${CLEAR}${text}${"\n".repeat(prevRows)}`);
    return lines.prompt(true);
  };
  const view = new ChatView(print, () => "/retry, or /go-on");
  // Among the lines of the chat: the row where one types is not to be written over.
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
  // A failure reaches the code that awaits it below; until then it is no unhandled rejection.
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
