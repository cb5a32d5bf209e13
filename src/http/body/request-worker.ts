import { parentPort, workerData } from "node:worker_threads";
import { transferReader } from "../../rpc/request/request-transfer.ts";
import type { ReadOrder, ReadOutcome, RequestThreadData } from "./request-thread.ts";

// The worker of RequestThread: it handles one message at a time and replies once to each.

const { allowUnknownFields } = workerData as RequestThreadData;
const read = transferReader(allowUnknownFields);

parentPort?.on("message", ({ operation, isBinary, bytes }: ReadOrder) => {
  let outcome: ReadOutcome;
  try {
    outcome = read(operation, isBinary, bytes);
  } catch (error) {
    outcome = { failure: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  const given = "binary" in outcome ? [outcome.binary, ...(outcome.bytes ?? [])] : [];
  parentPort?.postMessage(outcome, [...new Set(given.map(({ buffer }) => buffer as ArrayBuffer))]);
  // Garbage collection of the bodies' memory may come late.
  const { buffer } = bytes as Uint8Array<ArrayBuffer>;
  if (!buffer.detached) buffer.transfer(0);
});
