import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";

/** Returns whether a duration in the policies is a limit: unset and 0 s are not. */
export function isLimit(duration: Duration | undefined): duration is Duration {
  return duration !== undefined && (duration.seconds > 0n || duration.nanos > 0);
}

/** Returns a duration in the policies in milliseconds; undefined when it is not a limit. */
export function limitMs(duration: Duration | undefined): number | undefined {
  return isLimit(duration) ? durationMs(duration) : undefined;
}
