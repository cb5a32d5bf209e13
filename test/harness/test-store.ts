import { builderOf } from "../../src/store/query-builder.ts";
import { diffOf } from "../../src/store/record/packed-diff.ts";
import "../../src/services/access/hooks.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  create,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { createContextValues, createHandlerContext, type HandlerContext } from "@connectrpc/connect";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Caller } from "../../src/domain/identity/caller.ts";
import { createPageTokens, PAGE_BYTES } from "../../src/domain/page.ts";
import { equalBytes, keysFrom } from "../../src/keys.ts";
import {
  createOrganizationWithToken,
  createTokenAsOperator,
} from "../../src/services/access/organization-creation.ts";
import { callerKey } from "../../src/services/call/call.ts";
import type { ServiceDependencies } from "../../src/services/call/dependencies.ts";
import { createRevocationMonitor } from "../../src/services/call/revocation-monitor.ts";
import { connectStore } from "../../src/store/postgres/open.ts";
import { openStore, type SqliteStore } from "../../src/store/sqlite/open.ts";
import { type Store, SYSTEM } from "../../src/store/store.ts";
import { databaseUrlOf, dropData } from "./data-config.ts";
import { copyTemplate } from "./sqlite-template.ts";

/** Keeps a kind for good. */
const FOREVER = { days: 0, count: 0 };

export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 3600 * 1000;

/** Start of every test's clock: 2026-01-01 UTC. */
export const START_MS = Date.UTC(2026, 0, 1);

/** Opens a store in its own folder, with a clock that only the test moves and ids that ascend with it. */
export function openTestStore(
  options: { readonly groupMs?: number; readonly quotaBytes?: number; readonly dataDir?: string } = {},
) {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "chartroom-store-"));
  const clock = { now: START_MS };
  let made = 0;
  const newId = () => {
    const time = clock.now.toString(16).padStart(12, "0");
    made += 1;
    return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${made.toString(16).padStart(12, "0")}`;
  };
  const keys = keysFrom(new Uint8Array(32).fill(7));
  const settings = { now: () => clock.now, newId, audit: keys.audit, ...options };
  const url = databaseUrlOf(dataDir);
  // A test that names a folder gave it its content.
  if (!url && options.dataDir === undefined) copyTemplate(dataDir);
  const store: Store = url
    ? connectStore({ url, connections: 3, ...settings })
    : openStore({ dataDir, ...settings });
  const deps: ServiceDependencies = {
    store,
    keys,
    pageTokens: createPageTokens(keys.pageMac, equalBytes),
    check: () => undefined,
    baseUrl: () => "http://localhost:8080",
    now: () => clock.now,
    allowOrganizationCreation: false,
    machineIssuers: () => [],
    retention: { executions: FOREVER, agentExecutions: FOREVER, triggerEntries: FOREVER, events: FOREVER },
    serverHealth: async () => ({ version: "1", startedAt: 0, checks: [], server: [], organization: [] }),
    countLimit: 1_000,
    pageBytes: PAGE_BYTES,
    revocationMonitor: createRevocationMonitor(async () => undefined),
  };
  /** Makes a token valid however far a test moves the clock, and returns its id. */
  const makeLongLived = (token: string): Promise<string> =>
    store.write(SYSTEM, "test", async ({ db }) => {
      const { id } = await builderOf(db)
        .updateTable("token")
        .set({ expires_at: Number.MAX_SAFE_INTEGER })
        .where("hash", "=", keys.readToken(token)?.hash ?? new Uint8Array())
        .returning("id")
        .executeTakeFirstOrThrow();
      return id;
    });
  return {
    store,
    /** The searches of SQLite, by name. */
    search: (store as SqliteStore).search,
    dataDir,
    keys,
    deps,
    clock,
    newId,
    async close() {
      await store.close();
      rmSync(dataDir, { recursive: true });
      await dropData(dataDir);
    },
    /** Issues a token of a user and returns its id, as a caller has it. */
    async issueTokenId(userId: string): Promise<string> {
      return makeLongLived(
        await createTokenAsOperator(store, keys, { userId, description: "", validForMs: 0 }),
      );
    },
    /** Creates an organization and returns its administrator as a caller. */
    async createOrganization(name: string): Promise<Caller> {
      const { organizationId, userId, accountId, token } = await createOrganizationWithToken(store, keys, {
        operation: "test",
        organizationName: name,
        accountName: `Administrator of ${name}`,
        email: `${name}@example.org`,
      });
      const tokenId = await makeLongLived(token);
      return userOf({ organizationId, accountId, tokenId }, userId);
    },
    /** Returns the audit and event rows of an organization, newest last. */
    async history({ organizationId }: Pick<Caller, "organizationId">) {
      const rows = (table: "audit_log" | "event") =>
        builderOf(store.reader)
          .selectFrom(table)
          .selectAll()
          .where("organization_id", "=", organizationId)
          .orderBy("sequence")
          .execute();
      const audit = await rows("audit_log");
      return { audit: audit.map((row) => ({ ...row, diff: diffOf(row) })), events: await rows("event") };
    },
  };
}

export type TestStore = ReturnType<typeof openTestStore>;

/** Returns another user of the same organization as a caller, with the same token. */
export function userOf(
  like: Pick<Caller, "organizationId" | "accountId" | "tokenId">,
  userId: string,
): Caller {
  return {
    organizationId: like.organizationId,
    accountId: like.accountId,
    subject: create(SubjectSchema, { id: userId, principal: Principal.USER }),
    role: "administrator",
    tokenId: like.tokenId,
    readOnly: false,
  };
}

type Operations<S extends DescService> = {
  [M in keyof S["method"]]: S["method"][M] extends DescMethodUnary<infer I, infer O>
    ? (req: MessageInitShape<I>) => Promise<MessageShape<O>>
    : never;
};

/** Returns the operations of a service class as a caller sees them, without a network. */
export function operationsOf<S extends DescService>(
  contract: S,
  service: object,
  caller: Caller,
): Operations<S> {
  const implementation = service as Record<string, (req: unknown, ctx: HandlerContext) => Promise<never>>;
  const operations = contract.methods.map((method) => {
    const operation = async (init: never) => {
      const ctx = contextOf(method, caller);
      const answer = await implementation[method.localName]?.(create(method.input, init), ctx);
      return create(method.output, answer);
    };
    return [method.localName, operation];
  });
  return Object.fromEntries(operations);
}

/**
 * Returns the handler context of an operation.
 *
 * @param leaving aborts when the client disconnects
 */
export function contextOf(
  method: DescMethod,
  caller: Caller,
  leaving?: AbortSignal,
  timeoutMs?: number,
): HandlerContext {
  return createHandlerContext({
    service: method.parent,
    method,
    protocolName: "connect",
    requestMethod: "POST",
    url: "",
    contextValues: createContextValues().set(callerKey, caller),
    ...(leaving && { requestSignal: leaving }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
}
