import { type RawData, tablesOf } from "./raw-data.ts";

/**
 * The counted columns of each table, and how its rows name their organization. Written
 * independently of the source, so that the migration is checked against it.
 */
const COUNTED: Readonly<Record<string, string>> = {
  agent_execution: "select organization_id, first_turn, progress, body from agent_execution",
  agent_input:
    "select organization_id, i.turn, i.body from agent_input i join agent_execution e on e.id = i.execution_id",
  agent_input_image:
    "select organization_id, i.data from agent_input_image i join agent_execution e on e.id = i.execution_id",
  agent_output:
    "select organization_id, o.body from agent_output o join agent_execution e on e.id = o.execution_id",
  agent_review_draft: "select organization_id, body from agent_review_draft",
  approval: "select organization_id, body from approval",
  environment: "select organization_id, body from environment",
  environment_changes: "select organization_id, body from environment_changes",
  environment_connection: "select organization_id, body from environment_connection",
  member_group: "select organization_id, body from member_group",
  pull_request: "select organization_id, memory, body from pull_request",
  environment_class: "select organization_id, body from environment_class",
  environment_file_diff: "select organization_id, body from environment_file_diff",
  host_token: "select organization_id, sealed_token, sealed_refresh_token, body from host_token",
  idempotency: "select organization_id, response from idempotency",
  organization_policies: "select organization_id, body, origins from organization_policies",
  prebuild: "select organization_id, body from prebuild",
  project: "select organization_id, technical_description, used_by, body from project",
  runner: "select organization_id, body from runner",
  secret: "select organization_id, sealed, body from secret",
  security_policy: "select organization_id, body from security_policy",
  service_account: "select organization_id, body from service_account",
  service_account_trust: "select organization_id, body from service_account_trust",
  event_subscription: "select organization_id, body from event_subscription",
  step_log: "select organization_id, l.data from step_log l join workflow_action a on a.id = l.action_id",
  token: "select organization_id, body from token",
  workflow: "select organization_id, body from workflow",
  workflow_action: "select organization_id, outputs, body, progress from workflow_action",
  workflow_execution:
    "select organization_id, variables, action_failures, action_warnings, body, progress from workflow_execution",
  workflow_plan:
    "select organization_id, p.body from workflow_plan p join workflow_execution e on e.id = p.execution_id",
  workflow_trigger_event: "select organization_id, payload, body from workflow_trigger_event",
};

/** Tables that are not counted, and why. */
const NOT_COUNTED: Readonly<Record<string, string>> = {
  account: "people, not an organization's",
  agent: "the operator's",
  agent_execution_annotation: "repeats the body",
  agent_interest: "ids",
  approval_decider: "repeats the body",
  audit_anchor: "of a fixed size",
  audit_export: "positions of a job, of a fixed size",
  audit_log: "no caller can remove it",
  block_receipt: "of an account",
  environment_egress: "of a fixed size",
  environment_question: "goes with who waits for the answer, within a minute",
  event_delivery: "nobody can remove it but with its subscription; it goes with its age, and 10,000 are kept",
  event: "nobody can remove it; it goes with its age",
  group_membership: "ids",
  device_login: "of a fixed size, for 15 minutes",
  role_assignment: "ids",
  fact: "the installation's",
  installation: "the installation's",
  machine_token_use: "of a fixed size, for an hour",
  member: "ids",
  migration: "the installation's",
  organization: "itself",
  organization_invite: "of a fixed size",
  organization_storage: "the count itself",
  pending_stop: "ids",
  prebuild_schedule: "ids",
  project_annotation: "repeats the body",
  project_environment_class: "repeats the body",
  project_remote: "repeats the body",
  project_search_range: "numbers",
  project_use: "ids",
  pruning: "within a transaction",
  provider_identity: "of an account",
  sign_in_attempt: "of an account or a network, for minutes",
  subscription: "of an account",
  webhook_delivery: "ids, for 24 hours",
  work: "ids",
  work_turn: "numbers",
  workflow_schedule: "repeats the body",
  workflow_secret: "of a fixed size",
};

/** Returns the tables that neither list names, apart from the engine's own and those of its search index. */
export async function unlistedTables(raw: RawData): Promise<string[]> {
  return (await tablesOf(raw)).filter(
    (name) => !(name in COUNTED || name in NOT_COUNTED || /^project_search(_|$)/.test(name)),
  );
}

/** Returns the bytes of every organization, summed from its rows. */
export async function summedBytes(raw: RawData): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const { id } of await raw.rows<{ id: string }>("select id from organization")) sums.set(id, 0);
  for (const query of Object.values(COUNTED)) {
    for (const { organization_id, ...values } of await raw.rows<Owned>(query)) {
      const bytes = Object.values(values).map((value) => (value === null ? 0 : Buffer.byteLength(value)));
      const sum = sums.get(organization_id);
      if (sum !== undefined)
        sums.set(
          organization_id,
          bytes.reduce((one, other) => one + other, sum),
        );
    }
  }
  return sums;
}

/** The owner of a row, and its counted values by their columns. */
type Owned = { readonly organization_id: string } & Readonly<Record<string, string | Buffer | null>>;

/** Returns the stored count of every organization. */
export async function countedBytes(raw: RawData): Promise<Map<string, number>> {
  const rows = await raw.rows<{ organization_id: string; bytes: number }>(
    "select organization_id, bytes from organization_storage",
  );
  return new Map(rows.map(({ organization_id, bytes }) => [organization_id, bytes]));
}

/** Describes each organization whose count differs from the sum of its rows. */
export async function storageProblems(raw: RawData): Promise<string[]> {
  const counted = await countedBytes(raw);
  return [...(await summedBytes(raw))]
    .filter(([id, bytes]) => counted.get(id) !== bytes)
    .map(([id, bytes]) => `stored bytes of ${id}: counted ${counted.get(id)}, summed ${bytes}`);
}
