import { Code, ConnectError } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { answer, bodyTooLarge } from "../rpc/error.ts";

/**
 * How many times its size a compressed body may unpack to, past
 * {@link FREE_BYTES}. Measured: 3,000 projects that differ in a name, a remote and
 * an id pack 38 times, with indentation 52 times; 100 whose description is one
 * sentence 270 times over, 212 times. Bytes that say nothing pack a thousand times.
 */
const MAX_RATIO = 400;

/** What any body may unpack to: a small one is cheap to read, whatever its ratio. */
const FREE_BYTES = 1024 * 1024;

/** Returns the most that a compressed body may unpack to, in bytes. */
export function unpackedLimit(packedBytes: number, limitBytes: number): number {
  return Math.min(limitBytes, Math.max(FREE_BYTES, MAX_RATIO * packedBytes));
}

/**
 * Unpacks a body that is compressed with gzip, on a thread of the system's, and
 * stops at the first byte too many.
 *
 * @param limitBytes the most that the operation takes
 * @throws ConnectError BODY_TOO_LARGE past the limit, BODY_TOO_COMPLEX past the
 *   ratio, and the protocol layer's own for what is no gzip
 */
export async function unpack(packed: Uint8Array<ArrayBuffer>, limitBytes: number): Promise<Uint8Array> {
  const most = unpackedLimit(packed.length, limitBytes);
  try {
    return await compressionGzip.decompress(packed, most);
  } catch (error) {
    if (!(error instanceof ConnectError) || error.code !== Code.ResourceExhausted) throw error;
    if (most === limitBytes) throw bodyTooLarge(limitBytes);
    const message = `the compressed body unpacks to more than ${MAX_RATIO} times its size: send it uncompressed`;
    throw answer(ErrorReason.BODY_TOO_COMPLEX, message, { measure: "ratio", limit: String(MAX_RATIO) });
  }
}
