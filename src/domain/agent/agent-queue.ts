import { queueChanged, queueFull } from "../error.ts";

/**
 * The maximum number of queued inputs (contract, SendToAgentExecution). Wake events of the service
 * are not limited by it.
 */
const MAX_QUEUED_INPUTS = 50;

/**
 * The maximum number of inputs including control inputs. It is higher, so that a queue full of messages
 * does not prevent somebody from clearing a goal.
 */
const MAX_WITH_CONTROL_INPUTS = 100;

/** An input that waits for its delivery. */
export interface QueuedInput {
  readonly id: string;
  /**
   * Position in the order of delivery: a unique number, greater than those of all inputs before it.
   */
  readonly place: number;
  /** True when it is delivered immediately, into the current turn. */
  readonly steer: boolean;
}

/**
 * The waiting inputs of an execution. Inputs that are delivered immediately come before all others.
 */
export interface AgentQueue {
  /** Increases by one with each change. */
  readonly revision: number;
  /** In ascending order of place. */
  readonly inputs: readonly QueuedInput[];
}

/** Requires that a queue has space for a message or an event. @throws DomainError QUEUE_FULL */
export function requireQueueSpace({ inputs }: Pick<AgentQueue, "inputs">): void {
  if (inputs.length >= MAX_QUEUED_INPUTS) throw queueFull(MAX_QUEUED_INPUTS);
}

/** Requires that a queue has space for a control input. @throws DomainError QUEUE_FULL */
export function requireControlSpace({ inputs }: Pick<AgentQueue, "inputs">): void {
  if (inputs.length >= MAX_WITH_CONTROL_INPUTS) throw queueFull(MAX_WITH_CONTROL_INPUTS);
}

/**
 * Requires that a queue has not changed since the caller read it.
 * @param expected the revision that the caller expects; undefined for any
 * @throws DomainError QUEUE_CHANGED
 */
export function requireQueueRevision(expected: bigint | undefined, revision: number): void {
  if (expected !== undefined && expected !== BigInt(revision)) throw queueChanged(revision);
}

/**
 * Returns the queue with one more input: at its end or, when it steers, after the other steering
 * inputs.
 */
export function withInput(queue: AgentQueue, id: string, steer: boolean): AgentQueue {
  const { inputs } = queue;
  return withInputs(queue, inserted(inputs, steer ? steeringCount(inputs) : inputs.length, { id, steer }));
}

/** Returns the queue without an input, which was delivered or deleted. */
export function withoutInput(queue: AgentQueue, id: string): AgentQueue {
  return withInputs(queue, inputsExcept(queue, id));
}

/** Returns the queue with an input marked for immediate delivery, after those marked before it. */
export function withSteeredInput(queue: AgentQueue, id: string): AgentQueue {
  if (queue.inputs.some((input) => input.id === id && input.steer)) return queue;
  const rest = inputsExcept(queue, id);
  return withInputs(queue, inserted(rest, steeringCount(rest), { id, steer: true }));
}

/**
 * Returns the queue with an input moved in front of another, or to the end when `beforeId` is
 * empty. A moved input is no longer delivered immediately, and so comes after all inputs that are.
 */
export function withMovedInput(queue: AgentQueue, id: string, beforeId: string): AgentQueue {
  if (beforeId === id) return queue;
  const rest = inputsExcept(queue, id);
  const target = beforeId === "" ? rest.length : rest.findIndex((input) => input.id === beforeId);
  const index = Math.max(target, steeringCount(rest));
  const present = queue.inputs.findIndex((input) => input.id === id);
  if (index === present && !queue.inputs[present]?.steer) return queue;
  return withInputs(queue, inserted(rest, index, { id, steer: false }));
}

/**
 * Returns the input to deliver next; undefined while all inputs have to wait for the end of the
 * turn.
 */
export function nextInput({ inputs }: AgentQueue, isIdle: boolean): QueuedInput | undefined {
  const [first] = inputs;
  return isIdle || first?.steer ? first : undefined;
}

/** Returns the inputs of a queue that are new, or at another place than in an older state of it. */
export function newlyPlacedInputs(before: AgentQueue, after: AgentQueue): QueuedInput[] {
  // An unchanged input is the same object before and after.
  const known = new Set(before.inputs);
  return after.inputs.filter((input) => !known.has(input));
}

function withInputs({ revision }: AgentQueue, inputs: readonly QueuedInput[]): AgentQueue {
  return { revision: revision + 1, inputs };
}

function inputsExcept({ inputs }: AgentQueue, id: string): QueuedInput[] {
  const rest = inputs.filter((input) => input.id !== id);
  if (rest.length === inputs.length) throw new Error(`the input ${id} is not queued`);
  return rest;
}

function steeringCount(inputs: readonly QueuedInput[]): number {
  return inputs.filter(({ steer }) => steer).length;
}

/**
 * Gives a place to the new input only, unless its neighbours are so close that all inputs need new
 * places.
 */
function inserted(
  inputs: readonly QueuedInput[],
  index: number,
  input: Omit<QueuedInput, "place">,
): QueuedInput[] {
  const below = inputs[index - 1]?.place;
  const above = inputs[index]?.place;
  const place = between(below, above);
  const placed = inputs.toSpliced(index, 0, { ...input, place });
  const isBetween = (below === undefined || below < place) && (above === undefined || place < above);
  return isBetween ? placed : placed.map((each, position) => ({ ...each, place: position + 1 }));
}

function between(below: number | undefined, above: number | undefined): number {
  if (below === undefined) return above === undefined ? 1 : above - 1;
  return above === undefined ? below + 1 : (below + above) / 2;
}
