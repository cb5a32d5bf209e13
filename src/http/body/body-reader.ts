import type { ParseElsewhere } from "../../rpc/request/parsed-request.ts";
import { BodyBudget } from "./body-budget.ts";
import { RequestThread } from "./request-thread.ts";

const MIB = 1024 * 1024;

export interface BodyReaderSettings {
  readonly allowUnknownFields: boolean;
  /** In MiB. */
  readonly callerBodyBytes: number;
  /** In MiB. */
  readonly bodyBytes: number;
}

/** The limits on the cost of requests that are read. */
export interface BodyReader {
  readonly budget: BodyBudget;
  readonly parseElsewhere: ParseElsewhere;
  close(): Promise<void>;
}

/** Requests above this size, in bytes, use a separate thread so that smaller ones do not wait: 16 MiB take a second. */
const SHARED_THREAD_BYTES = MIB;

/** Creates the body reader that all entry points share; each thread starts with its first request. */
export function createBodyReader(settings: BodyReaderSettings): BodyReader {
  const large = new RequestThread(settings.allowUnknownFields);
  const largest = new RequestThread(settings.allowUnknownFields);
  return {
    budget: new BodyBudget({
      callerBytes: settings.callerBodyBytes * MIB,
      totalBytes: settings.bodyBytes * MIB,
      now: () => performance.now(),
    }),
    parseElsewhere: (reading, isBinary, bytes, turn) =>
      (bytes.length > SHARED_THREAD_BYTES ? largest : large).parse(reading, isBinary, bytes, turn),
    close: async () => void (await Promise.all([large.close(), largest.close()])),
  };
}
