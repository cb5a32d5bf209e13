import { join } from "node:path";

/** Keeps what Node compiles in its processes of tests, by the content of each file. */
export const COMPILE_CACHE = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/compile"),
};
/** Arguments with which Node looks for modules as the program does. */
export const RESOLUTION_CACHE = ["--import", new URL("../../bin/resolution-cache.js", import.meta.url).href];
