/**
 * Names the address of the server of a run; not as a setting is named, since commands reject settings that they do not
 * know.
 */
export const URL_VARIABLE = "TEST_POSTGRES_URL";

/** Name of the database that the set-up of a run migrates, and that each database of a test is a copy of. */
export const TEMPLATE = "chartroom_template";
