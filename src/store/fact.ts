import type { Kysely } from "kysely";
import type { Schema } from "./schema.ts";
import type { WriteTransaction } from "./store.ts";

/** A fact about the installation; undefined when it was never written. */
export async function findFact(db: Kysely<Schema>, name: string): Promise<string | undefined> {
  const row = await db.selectFrom("fact").select("value").where("name", "=", name).executeTakeFirst();
  return row?.value;
}

/** Facts concern no organization, so they leave no audit row. */
export async function insertFact(tx: WriteTransaction, name: string, value: string): Promise<void> {
  await tx.db.insertInto("fact").values({ name, value }).execute();
}
