import { builderOf } from "../../src/store/query-builder.ts";
import { SYSTEM } from "../../src/store/store.ts";
import type { Leased } from "./fake-runner.ts";
import { withServerData } from "./member.ts";
import type { ReachableServer } from "./server.ts";

/** For servers on which a test holds leases until it ends, however busy the machine is. */
export const LONG_LEASES: readonly string[] = ["--lease-duration", "3600"];

/** Makes a lease expire now; the server notices within a second. */
export async function expireLease(
  server: Pick<ReachableServer, "dataDir">,
  { leaseId }: Pick<Leased, "leaseId">,
): Promise<void> {
  await withServerData(server, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db)
        .updateTable("work")
        .set({ expires_at: now })
        .where("id", "=", leaseId)
        .executeTakeFirstOrThrow(),
    ),
  );
}

/** Makes all leases expire now, as if their holders were long gone; the server notices within a second. */
export async function expireAllLeases(server: Pick<ReachableServer, "dataDir">): Promise<void> {
  await withServerData(server, (store) =>
    store.write(SYSTEM, "test", ({ db, now }) =>
      builderOf(db).updateTable("work").set({ expires_at: now }).where("leased_by", "is not", null).execute(),
    ),
  );
}
