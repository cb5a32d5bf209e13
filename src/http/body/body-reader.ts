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

/** What bounds the cost of requests that are read. */
export interface BodyReader {
  readonly budget: BodyBudget;
  readonly parseBeside: ParseElsewhere;
  close(): Promise<void>;
}

/** Past this, in bytes, a request waits for others of its kind only: 16 MiB take a second. */
const LARGEST_BESIDE = MIB;

/** Makes what the ways in share; each thread starts with its first request. */
export function createIntake(settings: BodyReaderSettings): BodyReader {
  const large = new RequestThread(settings.allowUnknownFields);
  const largest = new RequestThread(settings.allowUnknownFields);
  return {
    budget: new BodyBudget({
      callerBytes: settings.callerBodyBytes * MIB,
      totalBytes: settings.bodyBytes * MIB,
    }),
    parseBeside: (reading, isBinary, bytes, turn) =>
      (bytes.length > LARGEST_BESIDE ? largest : large).parse(reading, isBinary, bytes, turn),
    close: async () => void (await Promise.all([large.close(), largest.close()])),
  };
}
