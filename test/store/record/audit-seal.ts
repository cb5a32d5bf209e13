import { keysFrom } from "../../../src/keys.ts";

/** Seals the audit rows of stores that tests open themselves. */
export const AUDIT = keysFrom(new Uint8Array(32).fill(7)).audit;
