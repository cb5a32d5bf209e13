import { type BlockAccountResponse, BlockAccountResponseSchema } from "#gen/service/v1/account_service_pb.js";
import { fromBody, toBody } from "../json.ts";
import { builderOf } from "../query-builder.ts";
import type { Reader, WriteTransaction } from "../store.ts";

/**
 * Returns the counts of what blocking the account stopped; undefined while the account is not
 * blocked.
 */
export async function findBlockReceipt(
  db: Reader,
  accountId: string,
): Promise<BlockAccountResponse | undefined> {
  const row = await builderOf(db)
    .selectFrom("block_receipt")
    .select("body")
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  return row && fromBody(BlockAccountResponseSchema, row.body);
}

/** Writes a receipt. It leaves no audit row: the rows of the resources that it counts do. */
export async function insertBlockReceipt(
  tx: WriteTransaction,
  accountId: string,
  receipt: BlockAccountResponse,
): Promise<void> {
  const body = toBody(BlockAccountResponseSchema, receipt);
  await builderOf(tx.db)
    .insertInto("block_receipt")
    .values({ account_id: accountId, blocked_at: tx.now, body })
    .execute();
}

/** Removes the receipt; the next block of the account writes a new one. */
export async function removeBlockReceipt(tx: WriteTransaction, accountId: string): Promise<void> {
  await builderOf(tx.db).deleteFrom("block_receipt").where("account_id", "=", accountId).execute();
}
