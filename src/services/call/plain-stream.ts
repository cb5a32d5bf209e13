import { type ContextKey, createContextKey } from "@connectrpc/connect";

/**
 * The context key that is true for a stream of lines or events, whose client resumes after the last message it
 * received. A stream that starts at the present first sends its position, so that the client can resume before
 * anything happens.
 */
export const announcesStartKey: ContextKey<boolean> = createContextKey<boolean>(false, {
  description: "tells where it starts",
});

/** A position in the output of an action's steps. */
export interface LogPosition {
  readonly attempt: number;
  readonly stepIndex: number;
  /** Bytes of the step's output before the position. */
  readonly offset: number;
}

/** The context key of the position after which a log stream continues; undefined when only the request specifies it. */
export const logPositionKey: ContextKey<LogPosition | undefined> = createContextKey<LogPosition | undefined>(
  undefined,
  { description: "position in the logs" },
);
