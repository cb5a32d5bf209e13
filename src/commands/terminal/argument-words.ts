/** A request field in the words of the command line. */
interface Argument {
  readonly words: string;
  /** The command that lists the ids it accepts. */
  readonly list?: string;
}

const RUN = { words: "the run", list: "chartroom run list" };
const EXECUTION = { words: "the execution", list: "chartroom workflow show WORKFLOW" };
const ACTION = { words: "the action", list: "chartroom workflow show EXECUTION" };
const PROJECT = { words: "the project", list: "chartroom project list" };

/** The fields whose arguments have different names. */
const ARGUMENTS: ReadonlyMap<string, Argument> = new Map<string, Argument>([
  ["agentExecutionId", RUN],
  ["agentExecutionIds", RUN],
  ["agentId", { words: "the agent", list: "chartroom agent list" }],
  ["approvalId", { words: "the approval", list: "chartroom approval list" }],
  ["environmentClassId", { words: "--class" }],
  ["environmentId", { words: "the environment", list: "chartroom environment list" }],
  ["eventDeliveryId", { words: "the delivery", list: "chartroom webhook ledger" }],
  ["eventKinds", { words: "--event" }],
  ["eventSubscriptionId", { words: "the webhook", list: "chartroom webhook list" }],
  ["prebuildId", { words: "the prebuild", list: "chartroom prebuild list" }],
  ["projectId", PROJECT],
  ["projectIds", PROJECT],
  ["runnerId", { words: "the runner", list: "chartroom runner list" }],
  ["workflowExecutionActionId", ACTION],
  ["workflowExecutionId", EXECUTION],
  ["workflowExecutionIds", EXECUTION],
]);

/** A broken rule with the path of its field, as errors of `constraint_violated` list them. */
const BROKEN_RULE = /(.+?) \[([A-Za-z][\w.]*(?:\[[^\]]*\][\w.]*)*)\](?:; |$)/gsy;

/**
 * Describes the broken rules of a request for people at the terminal: the argument, the rule, and what to do. Returns
 * other messages unchanged.
 * @param message the message of a server error, such as `must be at least 3 characters [name]`
 * @param argument the words for the argument, if known
 */
export function argumentWords(message: string, argument?: string): string {
  const rules = [...message.matchAll(BROKEN_RULE)];
  const length = rules.reduce((sum, [text]) => sum + text.length, 0);
  if (rules.length === 0 || length < message.length) return message;
  return rules.map(([, rule = "", path = ""]) => ruleWords(rule, path, argument)).join("; ");
}

function ruleWords(rule: string, path: string, argument: string | undefined): string {
  const field = path.replaceAll(/\[[^\]]*\]/g, "").replace(/^.*\./, "");
  const { words, list } = ARGUMENTS.get(field) ?? { words: `the ${wordsOf(field)}` };
  const [, bound, count] = /^must be at (least|most) (\d+) characters?$/.exec(rule) ?? [];
  const subject = argument ?? words;
  if (rule === "value is required" || (bound === "least" && count === "1"))
    return `${subject} must not be empty`;
  if (bound === "least") return `${subject} must have at least ${count} characters: give a longer one`;
  if (bound === "most") return `${subject} must have at most ${count} characters: give a shorter one`;
  if (rule === "must be a valid UUID")
    return `${subject} must be an id${list ? `: ${list} shows the ids` : ""}`;
  // A rule that is a full sentence already names its field.
  return rule.startsWith("must ") ? `${subject} ${rule}` : rule;
}

/** Returns a name such as `timeoutSeconds` in words. */
function wordsOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
