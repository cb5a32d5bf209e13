import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ChangedResourceSchema } from "#gen/service/v1/resource_pb.js";
import type {
  ApplyChangesRequest,
  ResourceService as Contract,
  PreviewChangesRequest,
} from "#gen/service/v1/resource_service_pb.js";
import { requireDistinctPlaceholders } from "../../../domain/access/resource-changes.ts";
import type { WriteTransaction } from "../../../store/store.ts";
import { callerOf, writeAsCaller, writePartAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { type FindOperation, makeChanges } from "./make-changes.ts";

/** Rolls back the write of a preview, and carries what the write would have changed. */
class PreviewRollback extends Error {
  override readonly name = "PreviewRollback";
  readonly resources: MessageInitShape<typeof ChangedResourceSchema>[];

  constructor(resources: MessageInitShape<typeof ChangedResourceSchema>[]) {
    super("the changes of a preview are rolled back");
    this.resources = resources;
  }
}

/** Up to this many changes may be made twice: {@link requestSavepoints} would make one of them twice anyway. */
const FEW_CHANGES = 3;

/**
 * Makes the store set savepoints for a write that fails at its end, by letting a part fail at its beginning. Without
 * savepoints, the store would have to repeat the write and all others in its commit.
 *
 * @throws the error of `part`
 */
async function requestSavepoints(tx: WriteTransaction, part: () => Promise<unknown>): Promise<void> {
  const failed = tx.attempt(async () => {
    await part();
    throw new PreviewRollback([]);
  });
  await failed.catch((error: unknown) => {
    if (!(error instanceof PreviewRollback)) throw error;
  });
}

/** Serves changes of several resources together. */
export class ResourceService implements ServiceImpl<typeof Contract> {
  readonly #deps: Pick<ServiceDependencies, "store">;
  readonly #findOperation: FindOperation;
  /** The last running or waiting write of each organization, by organization id. */
  readonly #lastWrites = new Map<string, Promise<void>>();

  constructor(deps: Pick<ServiceDependencies, "store">, findOperation: FindOperation) {
    this.#deps = deps;
    this.#findOperation = findOperation;
  }

  async previewChanges({ changes }: PreviewChangesRequest, ctx: HandlerContext) {
    requireDistinctPlaceholders(changes);
    const preview = await this.#inTurn(ctx, () =>
      writePartAsCaller(this.#deps.store, ctx, async (tx, caller): Promise<PreviewRollback> => {
        const make = (some: typeof changes) => makeChanges(this.#findOperation, ctx, { tx, caller }, some);
        if (changes.length > FEW_CHANGES) await requestSavepoints(tx, () => make(changes.slice(0, 1)));
        throw new PreviewRollback(await make(changes));
      }),
    ).catch((error: unknown) => {
      if (error instanceof PreviewRollback) return error;
      throw error;
    });
    return { resources: preview.resources };
  }

  applyChanges({ changes }: ApplyChangesRequest, ctx: HandlerContext) {
    requireDistinctPlaceholders(changes);
    return this.#inTurn(ctx, () =>
      writeAsCaller(this.#deps.store, ctx, async (tx, caller) => ({
        resources: await makeChanges(this.#findOperation, ctx, { tx, caller }, changes),
      })),
    );
  }

  /**
   * Runs the writes of an organization one after the other. Each may take as long as a thousand ordinary writes;
   * between two of them, ordinary writes can run, however many are sent at once.
   */
  async #inTurn<T>(ctx: HandlerContext, write: () => Promise<T>): Promise<T> {
    const { organizationId } = callerOf(ctx);
    const made = (this.#lastWrites.get(organizationId) ?? Promise.resolve()).then(write);
    const ended = made.then(
      () => undefined,
      () => undefined,
    );
    this.#lastWrites.set(organizationId, ended);
    try {
      return await made;
    } finally {
      if (this.#lastWrites.get(organizationId) === ended) this.#lastWrites.delete(organizationId);
    }
  }
}
