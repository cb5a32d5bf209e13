import { create } from "@bufbuild/protobuf";
import { RunnerKind } from "#gen/service/v1/runner_configuration_pb.js";
import { CreateRunnerRequestSchema } from "#gen/service/v1/runner_service_pb.js";
import { newRunner } from "../../domain/runner/runner.ts";
import type { Keys } from "../../keys.ts";
import { findOrganizations } from "../../store/identity/organization.ts";
import { insertRunner } from "../../store/runner/runner.ts";
import { findRunnerPage } from "../../store/runner/runner-list.ts";
import { OPERATOR, type Reader, type Scope, type Store, type WriteTransaction } from "../../store/store.ts";
import { replaceExchangeToken } from "./exchange-token.ts";

const NAME = "Local runner";

/** Finds the runner of the operator's server: every other runner has a creator. */
const CREATED_BY_OPERATOR = { creatorIds: [""], kinds: [RunnerKind.REMOTE] };

/**
 * Creates, as the operator, the exchange token with which the runner on the server's own machine registers at an
 * organization. Creates the runner if there is none.
 *
 * @param organizationId default the first organization
 * @returns the token's value; undefined while there is no organization
 */
export async function createLocalExchangeToken(
  store: Store,
  keys: Keys,
  organizationId?: string,
): Promise<string | undefined> {
  const find = async (db: Reader) => organizationId ?? (await findOrganizations(db))[0]?.id;
  const create = async (tx: WriteTransaction) => {
    const id = await find(tx.db);
    if (id === undefined) return undefined;
    const scope = { organizationId: id };
    return replaceExchangeToken(tx, scope, keys, await ensureLocalRunner(tx, scope));
  };
  return store.write(OPERATOR, "chartroom serve", create, {
    locks: async (db) => [await find(db)].filter((id) => id !== undefined),
  });
}

async function ensureLocalRunner(tx: WriteTransaction, scope: Scope): Promise<string> {
  const page = await findRunnerPage(tx.db, scope, CREATED_BY_OPERATOR, undefined, 1);
  const first = await page[0]?.read();
  if (first) return first.runnerId;
  const request = create(CreateRunnerRequestSchema, { name: NAME, kind: RunnerKind.REMOTE });
  const runner = newRunner(request, { id: tx.newId(), now: tx.now });
  await insertRunner(tx, scope, runner);
  return runner.runnerId;
}
