import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";

/** Whether a duration in the policies limits anything: unset and 0 s do not. */
export function isLimit(duration: Duration | undefined): duration is Duration {
  return duration !== undefined && (duration.seconds > 0n || duration.nanos > 0);
}

/** A duration in the policies in milliseconds; undefined when it limits nothing. */
export function limitMs(duration: Duration | undefined): number | undefined {
  return isLimit(duration) ? durationMs(duration) : undefined;
}
