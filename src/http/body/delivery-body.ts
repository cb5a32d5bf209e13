import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { writeConnectError } from "../../rpc/error/error.ts";
import type { HttpRequest } from "../connection/listener.ts";
import { incomingBody } from "./incoming-body.ts";

/** Maximum size of a delivery, in bytes. */
export const MAX_DELIVERY_BYTES = 1_048_576;

/**
 * Maximum for all deliveries in memory, in bytes. The sender of a delivery is only
 * known once its whole body has arrived, so without this limit unauthenticated
 * clients could fill the memory.
 */
export const MAX_HELD_BYTES = 64 * MAX_DELIVERY_BYTES;

/** Reads the bodies of deliveries into a bounded amount of memory. */
export interface DeliveryBodies {
  /**
   * Holds a body until `take` has settled.
   *
   * @returns the result of `take`; undefined for a body that is too large, whose
   *   rest is not read
   * @throws ConnectError unavailable when the arriving bodies together exceed the
   *   limit, for the one that began to arrive first: it has had the most time
   */
  hold<T>(req: HttpRequest, take: (body: Uint8Array) => Promise<T>): Promise<T | undefined>;
}

export function deliveryBodies(maxHeldBytes: number): DeliveryBodies {
  /** Incomplete bodies, in the order of their first bytes. */
  const arriving = new Set<Arrival>();
  let heldBytes = 0;

  const release = (arrival: Arrival): void => {
    arriving.delete(arrival);
    heldBytes -= arrival.bytes;
    arrival.bytes = 0;
  };
  const keep = (arrival: Arrival, bytes: number): void => {
    arrival.bytes += bytes;
    heldBytes += bytes;
    for (const first of arriving) {
      if (heldBytes <= maxHeldBytes) break;
      release(first);
      first.crowdedOut.reject(tooMany());
    }
  };
  return {
    async hold(req, take) {
      const arrival: Arrival = { bytes: 0, crowdedOut: Promise.withResolvers() };
      arrival.crowdedOut.promise.catch(() => undefined);
      arriving.add(arrival);
      try {
        const body = await read(req, arrival, keep);
        arriving.delete(arrival);
        return body && (await take(body));
      } finally {
        release(arrival);
      }
    },
  };
}

/** A body that is in memory, at first in part. */
interface Arrival {
  bytes: number;
  readonly crowdedOut: PromiseWithResolvers<never>;
}

async function read(
  req: HttpRequest,
  arrival: Arrival,
  keep: (arrival: Arrival, bytes: number) => void,
): Promise<Uint8Array | undefined> {
  if (Number(req.headers["content-length"] ?? 0) > MAX_DELIVERY_BYTES) return undefined;
  const incoming = incomingBody(req, undefined);
  const chunks: Uint8Array[] = [];
  try {
    for (;;) {
      const { done, value } = await Promise.race([arrival.crowdedOut.promise, incoming.next()]);
      if (done) return Buffer.concat(chunks);
      if (arrival.bytes + value.length > MAX_DELIVERY_BYTES) return undefined;
      chunks.push(value);
      keep(arrival, value.length);
    }
  } finally {
    void incoming.return();
  }
}

function tooMany(): ConnectError {
  return writeConnectError(
    ErrorReason.UNAVAILABLE,
    "too many deliveries arrive at the same time: send it again, under the same id",
  );
}
