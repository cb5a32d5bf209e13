/** The database of a data folder. In a module of its own, so that its name can be read without loading the engine. */
export const DATABASE_FILE = "chartroom.db";
