/** A line typed into a chat. Message ids may be abbreviated to a prefix. */
export type TypedLine =
  | { readonly kind: "nothing" }
  | { readonly kind: "message"; readonly text: string }
  | { readonly kind: "queue" }
  | { readonly kind: "inputs" }
  | { readonly kind: "steer"; readonly id: string }
  | { readonly kind: "delete"; readonly id: string }
  /** `beforeId` is empty for the end of the queue. */
  | { readonly kind: "move"; readonly id: string; readonly beforeId: string }
  | { readonly kind: "goal"; readonly action: "pause" | "resume" | "complete" | "clear" }
  | { readonly kind: "set-goal"; readonly objective: string }
  | { readonly kind: "compact" }
  | { readonly kind: "retry" }
  | { readonly kind: "go-on" }
  | { readonly kind: "stop" }
  | { readonly kind: "leave" }
  | { readonly kind: "help" }
  | { readonly kind: "mistake"; readonly why: string };

export const HELP = `What you type is sent to the agent. Lines that begin with a slash are commands:
  /queue             list queued messages, in order of delivery
  /inputs            list everything that was sent, with its receipt
  /steer ID          deliver a queued message into the current turn
  /delete ID         remove a message from the queue
  /move ID [BEFORE]  move a message before another, or to the end
  /goal OBJECTIVE    give the agent a goal
  /goal pause        also resume, complete, clear
  /compact           have the agent summarize the conversation to free context
  /retry             retry the turn that was lost
  /go-on             continue without the turn that was lost
  /stop              stop the run
  /leave             leave the chat; the run continues
IDs can be shortened. To send a message that begins with a slash, type two slashes.
`;

const GOAL_ACTIONS = ["pause", "resume", "complete", "clear"] as const;

/** Parses a typed line. */
export function parseTypedLine(line: string): TypedLine {
  const text = line.trim();
  if (text === "") return { kind: "nothing" };
  if (!text.startsWith("/")) return { kind: "message", text };
  if (text.startsWith("//")) return { kind: "message", text: text.slice(1) };
  const [, name = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(text) ?? [];
  return parseCommand(name, rest);
}

function parseCommand(name: string, rest: string): TypedLine {
  const [id = "", beforeId = "", more] = rest.split(/\s+/);
  switch (name) {
    case "queue":
    case "inputs":
    case "compact":
    case "retry":
    case "go-on":
    case "stop":
    case "leave":
    case "help":
      return rest === "" ? { kind: name } : mistake(`/${name} takes nothing more`);
    case "steer":
    case "delete":
      if (id !== "" && beforeId === "") return { kind: name, id };
      return mistake(`/${name} takes the id of a message`);
    case "move":
      if (id !== "" && more === undefined) return { kind: "move", id, beforeId };
      return mistake("/move takes the id of a message, and of the one that it goes in front of");
    case "goal":
      return parseGoal(rest);
    default:
      return mistake(`there is no /${name}: type /help`);
  }
}

function parseGoal(rest: string): TypedLine {
  const action = GOAL_ACTIONS.find((each) => each === rest);
  if (action) return { kind: "goal", action };
  return rest === "" ? mistake("/goal takes an objective") : { kind: "set-goal", objective: rest };
}

function mistake(why: string): TypedLine {
  return { kind: "mistake", why };
}
