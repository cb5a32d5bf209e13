import { createGunzip } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { bodyTooLarge, writeConnectError } from "../../rpc/error/error.ts";
import type { BodyAccount } from "../../rpc/request/arriving-bytes.ts";
import { join, releaseBuffer } from "../../rpc/request/free-chunk.ts";

/**
 * Maximum compression ratio of a body that unpacks to more than {@link FREE_BYTES}.
 * Measured ratios: 3,000 projects that differ in name, remote and id, 38, and 52
 * with indentation; 100 projects whose description repeats one sentence 270 times,
 * 212. A body of one repeated byte has a ratio of about 1,000.
 */
const MAX_RATIO = 400;

/** Unpacked size in bytes up to which any ratio is accepted: a small body is cheap to read. */
const FREE_BYTES = 1024 * 1024;

/** Size in bytes of the pieces in which a body is unpacked and counted. */
const PIECE_BYTES = 64 * 1024;

/** Returns the maximum size to which a compressed body may unpack, in bytes. */
function unpackedLimit(packedBytes: number, limitBytes: number): number {
  return Math.min(limitBytes, Math.max(FREE_BYTES, MAX_RATIO * packedBytes));
}

/**
 * Unpacks a gzip body on libuv's thread pool, and stops at the first piece past
 * the limit.
 *
 * @param packed not to be used afterwards
 * @param limitBytes maximum of the operation
 * @param hold counts the packed bytes and the unpacked ones so far
 * @throws ConnectError BODY_TOO_LARGE past the limit, BODY_TOO_COMPLEX past the
 *   ratio, BODY_BUDGET_EXCEEDED, and for a body that is not gzip the protocol
 *   layer's own error
 */
export async function unpack(
  packed: Uint8Array<ArrayBuffer>,
  limitBytes: number,
  hold: BodyAccount,
): Promise<Uint8Array<ArrayBuffer>> {
  if (packed.length === 0) return packed;
  const most = unpackedLimit(packed.length, limitBytes);
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of createGunzip({ chunkSize: PIECE_BYTES }).end(packed)) {
      length += piece.length;
      if (length > most) throw tooMuch(most, limitBytes);
      hold.set(packed.length + length);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof ConnectError ? error : noGzip(error);
  }
  releaseBuffer(packed);
  return join(pieces, length, releaseBuffer);
}

function tooMuch(most: number, limitBytes: number): ConnectError {
  if (most === limitBytes) return bodyTooLarge(limitBytes);
  const message = `the compressed body unpacks to more than ${MAX_RATIO} times its size: send it uncompressed`;
  return writeConnectError(ErrorReason.BODY_TOO_COMPLEX, message, {
    measure: "ratio",
    limit: String(MAX_RATIO),
  });
}

function noGzip(error: unknown): ConnectError {
  const { code } = error as { code?: string };
  const status = code === "Z_DATA_ERROR" ? Code.InvalidArgument : Code.Internal;
  return new ConnectError("decompression failed", status, undefined, undefined, error);
}
