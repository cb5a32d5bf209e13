import type { Subject } from "#gen/service/v1/identity_pb.js";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";

const selectRunner = prepared<
  { organizationId: string; host: string; subjectId: string; principal: number; now: number },
  { runnerId: string }
>((db, { organizationId, host, subjectId, principal, now }) =>
  db
    .selectFrom("host_token")
    .select("runner_id as runnerId")
    .where("subject_id", "=", subjectId)
    .where("subject_principal", "=", principal)
    .where("host", "=", host)
    .where("organization_id", "=", organizationId)
    .where((eb) => eb.or([eb("expires_at", "is", null), eb("expires_at", ">", now)]))
    .orderBy("id", "desc")
    .limit(1),
);

/**
 * Returns the runner whose credential a subject uses at a host when no runner is determined, as for
 * a search: that of the newest credential that is valid at `now`.
 * @param host in lower case
 * @param now milliseconds since 1970 UTC
 */
export async function findRunnerWithHostToken(
  db: Reader,
  scope: Scope,
  { host, subject }: { readonly host: string; readonly subject: Subject },
  now: number,
): Promise<string | undefined> {
  const [row] = await selectRunner(db, {
    organizationId: scope.organizationId,
    host,
    subjectId: subject.id,
    principal: subject.principal,
    now,
  });
  return row?.runnerId;
}
