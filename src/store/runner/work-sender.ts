import { create } from "@bufbuild/protobuf";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { isSameSubject, uniqueSubjects } from "../../domain/source/source-trust.ts";
import { textAt, unindexed } from "../expressions.ts";
import { subjectsOf, subjectsText } from "../identity/source-setter.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope, WriteTransaction } from "../store.ts";

const senderId = textAt("agent_input.body", ["sender", "id"]);
const senderPrincipal = textAt("agent_input.body", ["sender", "principal"]);

const selectSenders = prepared<
  { organizationId: string; environmentId: string; creatorId: string },
  { id: string; principal: string }
>((db, { organizationId, environmentId, creatorId }) =>
  db
    .selectFrom("agent_execution")
    .innerJoin("agent_input", "agent_input.execution_id", "agent_execution.id")
    .select([senderId.$castTo<string>().as("id"), senderPrincipal.$castTo<string>().as("principal")])
    .distinct()
    .where("agent_execution.environment_id", "=", environmentId)
    .where(unindexed("agent_execution.organization_id"), "=", organizationId)
    .where(senderId, "<>", creatorId)
    .where(senderPrincipal, "in", ["PRINCIPAL_USER", "PRINCIPAL_SERVICE_ACCOUNT"]),
);

const selectSteerers = prepared<{ id: string; organizationId: string }, { steered_by?: string | null }>(
  (db, { id, organizationId }) =>
    db
      .selectFrom("environment")
      .select("steered_by")
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

const updateSteerers = prepared<{ id: string; organizationId: string; steeredBy: string }, unknown>(
  (db, { id, organizationId, steeredBy }) =>
    db
      .updateTable("environment")
      .set({ steered_by: steeredBy })
      .where("id", "=", id)
      .where("organization_id", "=", organizationId),
);

/**
 * Returns the users and service accounts other than the creator that have sent inputs to the agent executions in an
 * environment, including those that have sent through the role of a group to executions that were removed.
 */
export async function findOtherSendersIn(
  db: Reader,
  scope: Scope,
  environmentId: string,
  creatorId: string,
): Promise<Subject[]> {
  const { organizationId } = scope;
  const rows = await selectSenders(db, { organizationId, environmentId, creatorId });
  const present = rows.map(({ id, principal: name }) => {
    const principal = name === "PRINCIPAL_USER" ? Principal.USER : Principal.SERVICE_ACCOUNT;
    return create(SubjectSchema, { id, principal });
  });
  const steerers = await findSteerers(db, scope, environmentId);
  return uniqueSubjects(
    present,
    steerers.filter(({ id }) => id !== creatorId),
  );
}

/** Records with an environment that a subject has sent to an agent in it through the role of a group. */
export async function addSteerer(
  tx: WriteTransaction,
  scope: Scope,
  environmentId: string,
  sender: Subject,
): Promise<void> {
  const known = await findSteerers(tx.db, scope, environmentId);
  if (known.some((each) => isSameSubject(each, sender))) return;
  const { organizationId } = scope;
  const steeredBy = subjectsText([...known, sender]);
  await updateSteerers(tx.db, { id: environmentId, organizationId, steeredBy });
}

async function findSteerers(db: Reader, { organizationId }: Scope, id: string): Promise<readonly Subject[]> {
  const [row] = await selectSteerers(db, { id, organizationId });
  return row?.steered_by ? subjectsOf(row.steered_by) : [];
}
