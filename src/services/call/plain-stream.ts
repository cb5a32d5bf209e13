import { type ContextKey, createContextKey } from "@connectrpc/connect";

/**
 * The context key that is true for a stream of lines or events, whose client resumes behind the last message that it
 * has: one that begins with the present tells first where that is, so that it can be resumed before anything happens.
 */
export const announcesStartKey: ContextKey<boolean> = createContextKey<boolean>(false, {
  description: "tells where it starts",
});

/** A place in what the steps of an action print. */
export interface LogPlace {
  readonly attempt: number;
  readonly stepIndex: number;
  /** Bytes of the step before the place. */
  readonly offset: number;
}

/** The context key of the place behind which a stream of logs goes on; undefined where the request alone says it. */
export const logPlaceKey: ContextKey<LogPlace | undefined> = createContextKey<LogPlace | undefined>(
  undefined,
  { description: "place in the logs" },
);
