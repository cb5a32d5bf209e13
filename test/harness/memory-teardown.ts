import { removeFolderOfRun } from "./memory.ts";
import { removeTemplate } from "./sqlite-template.ts";

/** Removes what {@link keepInMemory} and the run have made. */
export default function tearDown(): void {
  removeTemplate();
  removeFolderOfRun();
}
