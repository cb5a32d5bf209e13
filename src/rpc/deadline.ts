import { AsyncLocalStorage } from "node:async_hooks";

const MS_PER_UNIT: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Caps the deadline that a request asks for, in the header of its protocol. A
 * malformed header is left unchanged, and the protocol layer refuses it.
 *
 * @param headers lower-case names; changed in place
 */
export function capDeadline(headers: Record<string, string | string[] | undefined>, maxMs: number): void {
  const connect = headers["connect-timeout-ms"];
  if (typeof connect === "string" && /^\d{1,10}$/.test(connect) && Number(connect) > maxMs) {
    headers["connect-timeout-ms"] = String(maxMs);
  }
  const grpc = headers["grpc-timeout"];
  if (typeof grpc === "string") {
    const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(grpc) ?? [];
    if (amount !== undefined && unit !== undefined && Number(amount) * (MS_PER_UNIT[unit] ?? 0) > maxMs) {
      headers["grpc-timeout"] = `${maxMs}m`;
    }
  }
}

/**
 * Returns the deadline that a request asks for, in milliseconds, from the header
 * of its protocol; undefined without one, or when it cannot be parsed.
 *
 * @param headers lower-case names
 */
export function deadlineMs(headers: Record<string, string | string[] | undefined>): number | undefined {
  if (!/^application\/grpc/i.test(String(headers["content-type"]))) {
    const connect = headers["connect-timeout-ms"];
    return typeof connect === "string" && /^\d{1,10}$/.test(connect) ? Number(connect) : undefined;
  }
  const [, amount, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(String(headers["grpc-timeout"])) ?? [];
  return amount === undefined ? undefined : Number(amount) * (MS_PER_UNIT[unit] ?? 0);
}

const deadlines = new AsyncLocalStorage<number>();

/** Runs an operation with its caller's deadline, at which its database queries end too. */
export function withDeadline<T>(leftMs: number, operation: () => T): T {
  return deadlines.run(performance.now() + leftMs, operation);
}

/** Returns the deadline of the current operation on the clock of performance.now(); undefined without one. */
export function presentDeadline(): number | undefined {
  return deadlines.getStore();
}
