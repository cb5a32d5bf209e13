import { create } from "@bufbuild/protobuf";
import { type Work, type WorkSecret, WorkSecretSchema } from "#gen/runner/v1/work_pb.js";
import type { Environment } from "#gen/service/v1/environment_pb.js";
import { ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import type { Subject } from "#gen/service/v1/identity_pb.js";
import { DomainError } from "../../domain/error.ts";
import { ownerOf } from "../../domain/policy/secret.ts";
import { mayHaveSecrets, nearestSecrets } from "../../domain/policy/work-secrets.ts";
import { isSameSubject } from "../../domain/source/source-trust.ts";
import type { Keys } from "../../keys.ts";
import {
  findSecretsForWork,
  type OwnersForWork,
  recordHandedSecrets,
  type StoredSecret,
} from "../../store/policy/secret.ts";
import { findOtherSendersIn } from "../../store/runner/work-sender.ts";
import type { Scope, WriteTransaction } from "../../store/store.ts";
import { getExecutorAsCaller } from "../identity/executor.ts";
import { areTrustedBy } from "../identity/source-trust.ts";
import { openOrThrow } from "../policy/secret-value.ts";

/** Work that is being leased. */
export interface WorkToEquip {
  readonly runnerId: string;
  readonly leaseId: string;
  /** Id of the environment, action or agent execution that the work is for. */
  readonly subjectId: string;
  readonly content: Work["work"];
  readonly environment: Environment;
}

/** The secrets for the leases of one claim. Secrets of the same owners are read once. */
export class SecretsOfClaim {
  readonly #tx: WriteTransaction;
  readonly #scope: Scope;
  readonly #keys: Pick<Keys, "open">;
  readonly #found = new Map<string, Promise<readonly StoredSecret[]>>();

  constructor(tx: WriteTransaction, scope: Scope, keys: Pick<Keys, "open">) {
    this.#tx = tx;
    this.#scope = scope;
    this.#keys = keys;
  }

  /**
   * Returns the secrets that the work may have, with their values, and records in the audit log that its runner gets
   * them.
   *
   * @throws DamagedSecret
   */
  async handOut({ runnerId, leaseId, subjectId, content, environment }: WorkToEquip): Promise<WorkSecret[]> {
    const creator = environment.metadata?.creator;
    const actor = content.case === "agent" ? content.value.agentExecution?.metadata?.creator : creator;
    if (!creator || !actor || !mayHaveSecrets(environment)) return [];
    const projectId = environment.metadata?.projectId ?? "";
    // An agent that somebody else starts in the environment must not read the creator's own secrets.
    const all = await this.#find({ projectId, subjectId: isSameSubject(actor, creator) ? creator.id : "" });
    const areShareable = !all.some(({ secret }) => ownerOf(secret).id === creator.id);
    // Neither must an agent that somebody else could send to, nor what runs where such an agent has been.
    const nearest = nearestSecrets(
      areShareable || (await this.#isSteeredByTrusted(environment.id, creator))
        ? all
        : await this.#find({ projectId, subjectId: "" }),
    );
    if (nearest.length === 0 || !(await this.#mayAct(actor))) return [];
    recordHandedSecrets(this.#tx, this.#scope, {
      environmentId: environment.id,
      runnerId,
      leaseId,
      work: content.case ?? "",
      workSubjectId: subjectId,
      secretIds: nearest.map(({ secret }) => secret.id),
    });
    return nearest.map((each) => this.#toWorkSecret(each));
  }

  #find(owners: OwnersForWork): Promise<readonly StoredSecret[]> {
    const key = `${owners.projectId} ${owners.subjectId}`;
    const known = this.#found.get(key) ?? findSecretsForWork(this.#tx.db, this.#scope, owners);
    this.#found.set(key, known);
    return known;
  }

  async #isSteeredByTrusted(environmentId: string, creator: Subject): Promise<boolean> {
    const senders = await findOtherSendersIn(this.#tx.db, this.#scope, environmentId, creator.id);
    return areTrustedBy(this.#tx, this.#scope, creator, senders);
  }

  async #mayAct(subject: Subject): Promise<boolean> {
    try {
      await getExecutorAsCaller(this.#tx, this.#scope, subject);
      return true;
    } catch (error) {
      if (error instanceof DomainError && error.reason === ErrorReason.EXECUTOR_UNFIT) return false;
      throw error;
    }
  }

  #toWorkSecret({ secret, value }: StoredSecret): WorkSecret {
    const { id: secretId, name, mount: stored, credentialProxy } = secret;
    const mount: WorkSecret["mount"] =
      stored.case === "filePath" || stored.case === "environmentVariable" ? stored : { case: undefined };
    const facts = { secretId, name, value: openOrThrow(this.#keys, secretId, value) };
    if (!credentialProxy) return create(WorkSecretSchema, { ...facts, mount });
    const { targetHosts, header } = credentialProxy;
    // The secret has no mount outside the proxy, so a runner without credential proxy gives the work nothing.
    return create(WorkSecretSchema, {
      ...facts,
      credentialProxy: { targetHosts, header, placeholderMount: mount },
    });
  }
}
