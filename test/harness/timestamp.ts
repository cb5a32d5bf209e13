import { toJson } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";

/** Returns the JSON form in which the server answers a time, without the fraction of a whole second. */
export const timestampJson = (ms: number): string => toJson(TimestampSchema, timestampFromMs(ms));
