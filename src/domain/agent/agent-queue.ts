/** An input that waits for its delivery. */
export interface QueuedInput {
  readonly id: string;
  /** Order of delivery: a number of its own, greater than those of all before it. */
  readonly place: number;
  /** Whether it is delivered at once, into the turn that is going on. */
  readonly steer: boolean;
}

/** The inputs of a run that wait. Those that are delivered at once come before all others. */
export interface AgentQueue {
  /** Rises by one with each change. */
  readonly revision: number;
  /** By place ascending. */
  readonly inputs: readonly QueuedInput[];
}

/** The queue with one more input: at its end or, delivered at once, behind the others that are. */
export function withInput(queue: AgentQueue, id: string, steer: boolean): AgentQueue {
  const { inputs } = queue;
  return changed(queue, inserted(inputs, steer ? urgentCount(inputs) : inputs.length, { id, steer }));
}

/** The queue without an input, which was delivered or deleted. */
export function withoutInput(queue: AgentQueue, id: string): AgentQueue {
  return changed(queue, others(queue, id));
}

/** The queue with an input delivered at once, behind those that were to be so before it. */
export function steered(queue: AgentQueue, id: string): AgentQueue {
  if (queue.inputs.some((input) => input.id === id && input.steer)) return queue;
  const rest = others(queue, id);
  return changed(queue, inserted(rest, urgentCount(rest), { id, steer: true }));
}

/**
 * The queue with an input in front of another, or at the end where `beforeId` is
 * empty. What is moved is no longer delivered at once, and so comes behind all
 * that is.
 */
export function moved(queue: AgentQueue, id: string, beforeId: string): AgentQueue {
  if (beforeId === id) return queue;
  const rest = others(queue, id);
  const target = beforeId === "" ? rest.length : rest.findIndex((input) => input.id === beforeId);
  const index = Math.max(target, urgentCount(rest));
  const present = queue.inputs.findIndex((input) => input.id === id);
  if (index === present && !queue.inputs[present]?.steer) return queue;
  return changed(queue, inserted(rest, index, { id, steer: false }));
}

/** The input to deliver next; undefined while all that wait have to wait for the end of the turn. */
export function nextInput({ inputs }: AgentQueue, isIdle: boolean): QueuedInput | undefined {
  const [first] = inputs;
  return isIdle || first?.steer ? first : undefined;
}

/** The inputs of a queue that are not, or are elsewhere, in an older state of it. */
export function newlyPlaced(before: AgentQueue, after: AgentQueue): QueuedInput[] {
  // What a change leaves alone is the same object before and after.
  const known = new Set(before.inputs);
  return after.inputs.filter((input) => !known.has(input));
}

function changed({ revision }: AgentQueue, inputs: readonly QueuedInput[]): AgentQueue {
  return { revision: revision + 1, inputs };
}

function others({ inputs }: AgentQueue, id: string): QueuedInput[] {
  const rest = inputs.filter((input) => input.id !== id);
  if (rest.length === inputs.length) throw new Error(`the input ${id} is not queued`);
  return rest;
}

function urgentCount(inputs: readonly QueuedInput[]): number {
  return inputs.filter(({ steer }) => steer).length;
}

/** Only the new input gets a place, unless its neighbours are so close that all need new ones. */
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
