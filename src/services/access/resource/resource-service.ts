import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ChangedResourceSchema } from "#gen/service/v1/resource_pb.js";
import type {
  ApplyChangesRequest,
  ResourceService as Contract,
  PreviewChangesRequest,
} from "#gen/service/v1/resource_service_pb.js";
import { requireDistinctPlaceholders } from "../../../domain/access/resource-changes.ts";
import { writeAsCaller, writePartAsCaller } from "../../call/call.ts";
import type { ServiceDependencies } from "../../call/dependencies.ts";
import { type FindOperation, makeChanges } from "./make-changes.ts";

/** Ends a write that is to change nothing, with what it would have changed. */
class TakenBack extends Error {
  override readonly name = "TakenBack";
  readonly resources: MessageInitShape<typeof ChangedResourceSchema>[];

  constructor(resources: MessageInitShape<typeof ChangedResourceSchema>[]) {
    super("the changes of a preview are taken back");
    this.resources = resources;
  }
}

/** The service that changes several resources together. */
export class ResourceService implements ServiceImpl<typeof Contract> {
  readonly #deps: Pick<ServiceDependencies, "store">;
  readonly #findOperation: FindOperation;

  constructor(deps: Pick<ServiceDependencies, "store">, findOperation: FindOperation) {
    this.#deps = deps;
    this.#findOperation = findOperation;
  }

  async previewChanges({ changes }: PreviewChangesRequest, ctx: HandlerContext) {
    requireDistinctPlaceholders(changes);
    const preview = await writePartAsCaller(this.#deps.store, ctx, async (tx, caller): Promise<TakenBack> => {
      throw new TakenBack(await makeChanges(this.#findOperation, ctx, { tx, caller }, changes));
    }).catch((error: unknown) => {
      if (error instanceof TakenBack) return error;
      throw error;
    });
    return { resources: preview.resources };
  }

  applyChanges({ changes }: ApplyChangesRequest, ctx: HandlerContext) {
    requireDistinctPlaceholders(changes);
    return writeAsCaller(this.#deps.store, ctx, async (tx, caller) => ({
      resources: await makeChanges(this.#findOperation, ctx, { tx, caller }, changes),
    }));
  }
}
