import { firstState, type Operation, type State, step } from "./model.ts";

/** An operation that was answered; times are milliseconds since the begin of the round. */
export interface Answered {
  readonly operation: Operation;
  readonly server: number;
  readonly answer: string;
  readonly beganMs: number;
  readonly endedMs: number;
}

/**
 * Finds an order in which the operations of several clients, one after the other, would have been answered as they
 * were. One that was answered before another began comes before it. All orders are tried.
 * @param clients the operations of each client, in their order
 * @returns undefined when there is none
 */
export function findSerialOrder(clients: readonly (readonly Answered[])[]): Answered[] | undefined {
  const hopeless = new Set<string>();
  const order: Answered[] = [];
  const search = (done: readonly number[], state: State): boolean => {
    const next = clients.map((operations, client) => operations[done[client] ?? 0]);
    if (next.every((each) => each === undefined)) return true;
    const key = JSON.stringify([done, state]);
    if (hopeless.has(key)) return false;
    const firstEndMs = Math.min(...next.map((each) => each?.endedMs ?? Number.POSITIVE_INFINITY));
    for (const [client, each] of next.entries()) {
      if (!each || each.beganMs > firstEndMs) continue;
      const after = step(state, each.operation, each.answer, each.endedMs);
      if (!after) continue;
      order.push(each);
      if (search(done.with(client, (done[client] ?? 0) + 1), after)) return true;
      order.pop();
    }
    hopeless.add(key);
    return false;
  };
  return search(
    clients.map(() => 0),
    firstState(),
  )
    ? order
    : undefined;
}

/** Returns operations as lines for people, by the time of their begin. */
export function describeOperations(clients: readonly (readonly Answered[])[]): string {
  return clients
    .flatMap((operations, client) => operations.map((each) => ({ ...each, client })))
    .sort((one, other) => one.beganMs - other.beganMs)
    .map(
      ({ client, server, operation, answer, beganMs, endedMs }) =>
        `${beganMs.toFixed(1)}-${endedMs.toFixed(1)} ms, client ${client} at server ${server}: ` +
        `${JSON.stringify(operation)} -> ${answer}`,
    )
    .join("\n");
}
