import type { ParseBeside } from "../rpc/parsed-request.ts";
import { BodyBudget } from "./body-budget.ts";
import { RequestThread } from "./request-thread.ts";

const MIB = 1024 * 1024;

export interface IntakeSettings {
  readonly allowUnknownFields: boolean;
  /** In MiB. */
  readonly callerBodyBytes: number;
  /** In MiB. */
  readonly bodyBytes: number;
}

/** What bounds the cost of requests that are read. */
export interface Intake {
  readonly budget: BodyBudget;
  readonly parseBeside: ParseBeside;
  close(): Promise<void>;
}

/** Makes what the ways in share; the thread starts with the first large request. */
export function createIntake(settings: IntakeSettings): Intake {
  const thread = new RequestThread(settings.allowUnknownFields);
  return {
    budget: new BodyBudget({
      callerBytes: settings.callerBodyBytes * MIB,
      totalBytes: settings.bodyBytes * MIB,
    }),
    parseBeside: thread.parse,
    close: () => thread.close(),
  };
}
