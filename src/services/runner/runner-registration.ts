import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { RegisterRequest } from "#gen/runner/v1/work_service_pb.js";
import { CreateEnvironmentClassRequestSchema } from "#gen/service/v1/runner_configuration_service_pb.js";
import type { Runner } from "#gen/service/v1/runner_pb.js";
import { unauthenticated } from "../../domain/error.ts";
import type { Caller } from "../../domain/identity/caller.ts";
import { newEnvironmentClass } from "../../domain/runner/environment-class.ts";
import { supportedPoliciesOf } from "../../domain/runner/kept-policies.ts";
import { isLocalKind } from "../../domain/runner/runner.ts";
import { RUNNER_TOKEN_VALID_MS, registeredRunner } from "../../domain/runner/runner-heartbeat.ts";
import {
  API_AGENTS_LEVEL,
  mayStore,
  RUNNER_ISOLATION_LEVEL,
  RUNNER_POLICIES_LEVEL,
} from "../../store/feature-level.ts";
import { findTokens, insertToken, removeToken } from "../../store/identity/token.ts";
import { findClassesOfRunner, insertEnvironmentClass } from "../../store/runner/environment-class.ts";
import { findStoredRunner, setKeptPolicies, updateRunner } from "../../store/runner/runner-life.ts";
import type { WriteTransaction } from "../../store/store.ts";
import { writeAsCaller } from "../call/call.ts";
import type { ServiceDependencies } from "../call/dependencies.ts";

/** Exchanges a runner's exchange token for its own token. The same commit removes the exchange token. */
export function registerRunner(
  { store, keys }: Pick<ServiceDependencies, "store" | "keys">,
  req: RegisterRequest,
  ctx: HandlerContext,
) {
  return writeAsCaller(store, ctx, async (tx, caller) => {
    const runnerId = caller.subject.id;
    const known = await findStoredRunner(tx.db, caller, runnerId);
    if (!known) throw unauthenticated();
    await removeExchangeToken(tx, caller);
    const { isolation, apiAgents, version, systemDetails } = req;
    const keptPolicies = supportedPoliciesOf(req.keptPolicies);
    const said = {
      version,
      systemDetails,
      ...(mayStore(tx, RUNNER_ISOLATION_LEVEL) && { isolation }),
      ...(mayStore(tx, API_AGENTS_LEVEL) && { apiAgents }),
      ...(mayStore(tx, RUNNER_POLICIES_LEVEL) && { keptPolicies }),
    };
    const runner = registeredRunner(known.runner, said, tx.now);
    const local = req.local || isLocalKind(runner.kind);
    await updateRunner(tx, caller, known.runner, { runner, local, seenAt: tx.now });
    await setKeptPolicies(tx, caller, runnerId, keptPolicies);
    const environmentClassIds = await ensureClass(tx, caller, runner, req);
    const expiresAt = tx.now + RUNNER_TOKEN_VALID_MS;
    const { value, hash } = keys.mintToken("runner");
    await insertToken(tx, caller, {
      id: tx.newId(),
      organization_id: caller.organizationId,
      kind: "runner",
      subject_id: runnerId,
      hash,
      hmac_key_id: null,
      read_only: 0,
      expires_at: expiresAt,
      last_used_at: null,
      creator_account_id: null,
      disabled_at: null,
      body: "{}",
    });
    return { runnerId, token: value, expiresAt: timestampFromMs(expiresAt), environmentClassIds };
  });
}

async function removeExchangeToken(tx: WriteTransaction, caller: Caller): Promise<void> {
  const tokens = await findTokens(tx.db, caller, "exchange", caller.subject.id);
  const used = tokens.find(({ id }) => id === caller.tokenId);
  if (!used) throw unauthenticated();
  await removeToken(tx, caller, used);
}

/** Returns the ids of the runner's classes. When it has none, creates the offered class. */
async function ensureClass(
  tx: WriteTransaction,
  caller: Caller,
  runner: Runner,
  { environmentClass: offer }: RegisterRequest,
): Promise<string[]> {
  const classes = await findClassesOfRunner(tx.db, caller, runner.runnerId);
  if (classes.length > 0 || !offer) return classes.map(({ id }) => id);
  const { displayName, description } = offer;
  const request = create(CreateEnvironmentClassRequestSchema, { displayName, description });
  const created = newEnvironmentClass(request, runner, tx.newId());
  await insertEnvironmentClass(tx, caller, created);
  return [created.id];
}
