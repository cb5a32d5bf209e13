import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { isJsonObject } from "../../domain/json-object.ts";
import { createHttpTransport } from "../../runner/protocol/connection.ts";
import { isPermissionDenied, readAll } from "../client/call.ts";
import type { ServerAccess } from "../client/server-access.ts";
import { eachText, type Path } from "./folder.ts";

/** A resource's kind, name and id. */
export interface Named {
  readonly kind: string;
  readonly name: string;
  readonly id: string;
}

/** Kinds that files refer to but do not describe. */
const OTHER_KINDS = ["Runner", "Agent", "ServiceAccount", "User"] as const;

/** Fields that hold ids. */
const ID_FIELD = /^(id|\w*(Id|Ids|_id|_ids))$/;
const REFERENCE =
  /^(Project|Workflow|Group|EnvironmentClass|SecurityPolicy|Runner|Agent|ServiceAccount|User)\/(.+)$/s;

/** Maps the names that files use instead of ids, such as `Group/reviewers`, to ids and back. */
export class Names {
  readonly #access: ServerAccess;
  readonly #organizationId: string;
  #known: Named[];
  readonly #loaded = new Map<string, Promise<void>>();

  /** @param known the resources that files describe: existing ones, and those to create */
  constructor(access: ServerAccess, organizationId: string, known: readonly Named[]) {
    this.#access = access;
    this.#organizationId = organizationId;
    this.#known = [...known];
  }

  /**
   * Replaces the names in a document with ids.
   * @param report receives each name that is unknown or ambiguous
   */
  async resolve(content: JsonObject, report: (path: Path, message: string) => void): Promise<JsonObject> {
    const copy = structuredClone(content);
    for (const { text, path } of idsIn(content)) {
      const [, kind = "", name = ""] = REFERENCE.exec(text) ?? [];
      if (kind === "") continue;
      await this.#load(kind);
      const [found, ...others] = this.#known.filter((each) => each.kind === kind && each.name === name);
      if (!found) report(path, `names no ${kind} that there is`);
      else if (others.length > 0)
        report(path, `names several: give an id, of ${[found, ...others].map(({ id }) => id).join(", ")}`);
      else put(copy, path, found.id);
    }
    return copy;
  }

  /** Replaces the ids in a document with names that are unique. */
  async name(content: JsonObject): Promise<JsonObject> {
    const copy = structuredClone(content);
    const ids = idsIn(content);
    if (ids.length > 0) for (const kind of OTHER_KINDS) await this.#load(kind);
    for (const { text, path } of ids) {
      const found = this.#known.find(({ id }) => id === text);
      if (!found) continue;
      const isUnique = !this.#known.some(
        (each) => each.kind === found.kind && each.name === found.name && each.id !== found.id,
      );
      if (isUnique && found.name !== "") put(copy, path, `${found.kind}/${found.name}`);
    }
    return copy;
  }

  /** Replaces the resource with the same name, for example to set the id from a preview. */
  replace(named: Named): void {
    const others = this.#known.filter(({ kind, name }) => kind !== named.kind || name !== named.name);
    this.#known = [...others, named];
  }

  #load(kind: string): Promise<void> {
    const loading = this.#loaded.get(kind) ?? this.#read(kind);
    this.#loaded.set(kind, loading);
    return loading;
  }

  /** Reads the resources of a kind that files do not describe; none when the caller may not see them. */
  async #read(kind: string): Promise<void> {
    try {
      this.#known.push(...(await namedOf(this.#access, this.#organizationId, kind)));
    } catch (error) {
      if (!isPermissionDenied(error)) throw error;
    }
  }
}

function namedOf(access: ServerAccess, organizationId: string, kind: string): Promise<Named[]> {
  const transport = createHttpTransport(access.server);
  switch (kind) {
    case "Runner": {
      const client = createClient(RunnerService, transport);
      return readAll(
        access,
        (pagination, options) => client.listRunners({ pagination }, options),
        ({ runners }) => runners.map(({ runnerId: id, name }) => ({ kind, name, id })),
      );
    }
    case "Agent": {
      const client = createClient(AgentService, transport);
      return readAll(
        access,
        (pagination, options) => client.listAgents({ pagination }, options),
        ({ agents }) => agents.map(({ id, name }) => ({ kind, name, id })),
      );
    }
    case "ServiceAccount": {
      const client = createClient(ServiceAccountService, transport);
      return readAll(
        access,
        (pagination, options) => client.listServiceAccounts({ pagination }, options),
        ({ serviceAccounts }) => serviceAccounts.map(({ id, name }) => ({ kind, name, id })),
      );
    }
    case "User": {
      const client = createClient(OrganizationService, transport);
      return readAll(
        access,
        (pagination, options) => client.listMembers({ organizationId, pagination }, options),
        ({ members }) => members.map(({ userId: id, email: name }) => ({ kind, name, id })),
      );
    }
    default:
      return Promise.resolve([]);
  }
}

/** Returns the texts of all id fields. */
function idsIn(content: JsonObject): { readonly text: string; readonly path: Path }[] {
  const found: { text: string; path: Path }[] = [];
  eachText(content, (text, path) => {
    const field = path.findLast((part) => typeof part === "string");
    // People choose the keys of annotations.
    if (field !== undefined && ID_FIELD.test(String(field)) && !path.includes("annotations"))
      found.push({ text, path });
  });
  return found;
}

/** Sets a text in a document. */
function put(content: JsonObject, path: Path, value: string): void {
  let holder: JsonValue = content;
  for (const part of path.slice(0, -1)) {
    const inner: JsonValue | undefined = Array.isArray(holder)
      ? holder[Number(part)]
      : isJsonObject(holder)
        ? holder[String(part)]
        : undefined;
    if (inner === undefined) return;
    holder = inner;
  }
  const last = path.at(-1);
  if (Array.isArray(holder)) holder[Number(last)] = value;
  else if (isJsonObject(holder)) holder[String(last)] = value;
}
