import { create } from "@bufbuild/protobuf";
import { Principal, type Subject, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { textAt, unindexed } from "../expressions.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope } from "../store.ts";

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

/** Returns the users and service accounts besides a creator that have sent inputs to the agent executions in an environment. */
export async function findOtherSendersIn(
  db: Reader,
  { organizationId }: Scope,
  environmentId: string,
  creatorId: string,
): Promise<Subject[]> {
  const rows = await selectSenders(db, { organizationId, environmentId, creatorId });
  return rows.map(({ id, principal: name }) => {
    const principal = name === "PRINCIPAL_USER" ? Principal.USER : Principal.SERVICE_ACCOUNT;
    return create(SubjectSchema, { id, principal });
  });
}
