import { clone, create, fromJsonString } from "@bufbuild/protobuf";
import type { Kysely, Transaction } from "kysely";
import { v7 } from "uuid";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { type Project, Project_UsedBySchema, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { CreateProjectRequest, UpdateProjectRequest } from "#gen/service/v1/project_service_pb.js";
import { diffJson } from "../../src/domain/diff.ts";
import {
  newProject,
  projectRemotes,
  projectSearchText,
  updatedProject,
} from "../../src/domain/project/project.ts";
import { auditBytes } from "../../src/domain/record/audit-chain.ts";
import { toBody } from "../../src/store/json.ts";
import { packDiff } from "../../src/store/record/packed-diff.ts";
import type { Schema } from "../../src/store/schema.ts";
import { searchTables } from "../../src/store/sqlite/search/search-tables.ts";
import { searchTrigrams } from "../../src/store/sqlite/search/trigrams.ts";
import type { PeerCaller } from "./project-queries.ts";
import type { openKeys } from "./token-hash.ts";

type Tx = Transaction<Schema>;

/** Inserts a search text into the peer's own index; returns its row there, or null if the peer has no such index. */
type EnterText = (tx: Tx, caller: PeerCaller, text: string) => Promise<number | null>;

/** Opens the writes of the connect-node peers: the server's rows, by the same rules, in one commit for each write. */
export function openConnectWrites(
  db: Kysely<Schema>,
  keys: ReturnType<typeof openKeys>,
  enterText: EnterText,
) {
  const record = (tx: Tx, caller: PeerCaller, operation: string, change: Change) =>
    insertRecord(tx, keys, caller, operation, change);

  const insert = async (tx: Tx, caller: PeerCaller, operation: string, req: CreateProjectRequest) => {
    const project = newProject(req, {
      id: v7(),
      organizationId: caller.organizationId,
      creator: create(SubjectSchema, { id: caller.id, principal: Principal.USER }),
      now: Date.now(),
    });
    await tx
      .insertInto("project")
      .values({
        ...changingColumns(project),
        search_row: await enterText(tx, caller, projectSearchText(project)),
        id: project.id,
        organization_id: caller.organizationId,
        creator_id: caller.id,
        popularity: 0,
        used_by: toBody(Project_UsedBySchema, create(Project_UsedBySchema)),
      })
      .execute();
    const owned = { project_id: project.id, organization_id: caller.organizationId };
    const remotes = projectRemotes(project).map((remote_uri) => ({ ...owned, remote_uri }));
    if (remotes.length > 0) await tx.insertInto("project_remote").values(remotes).execute();
    const annotations = Object.entries(project.metadata?.annotations ?? {}).map(([key, value]) => ({
      ...owned,
      key,
      value,
    }));
    if (annotations.length > 0) await tx.insertInto("project_annotation").values(annotations).execute();
    const after = toBody(ProjectSchema, project);
    await record(tx, caller, operation, { id: project.id, kind: "created", before: undefined, after });
    return project;
  };

  return {
    createProject: (caller: PeerCaller, req: CreateProjectRequest) =>
      db.transaction().execute((tx) => insert(tx, caller, "service.v1.ProjectService/CreateProject", req)),
    createProjects: (caller: PeerCaller, requests: readonly CreateProjectRequest[]) =>
      db.transaction().execute(async (tx) => {
        const projects: Project[] = [];
        for (const req of requests) {
          projects.push(await insert(tx, caller, "service.v1.ProjectService/CreateProjects", req));
        }
        return projects;
      }),
    updateProject: (caller: PeerCaller, req: UpdateProjectRequest) =>
      db.transaction().execute(async (tx) => {
        const row = await tx
          .selectFrom("project")
          .select(["body", "used_by", "technical_description"])
          .where("id", "=", req.projectId.toLowerCase())
          .where("organization_id", "=", caller.organizationId)
          .executeTakeFirst();
        if (!row) return undefined;
        const before = fromJsonString(ProjectSchema, row.body);
        before.usedBy = fromJsonString(Project_UsedBySchema, row.used_by);
        before.technicalDescription = row.technical_description;
        const after = updatedProject(before, req, Date.now());
        await tx.updateTable("project").set(changingColumns(after)).where("id", "=", after.id).execute();
        if (projectSearchText(after) !== projectSearchText(before)) {
          const search_row = await enterText(tx, caller, projectSearchText(after));
          await tx.updateTable("project").set({ search_row }).where("id", "=", after.id).execute();
        }
        await record(tx, caller, "service.v1.ProjectService/UpdateProject", {
          id: after.id,
          kind: "updated",
          before: toBody(ProjectSchema, before),
          after: toBody(ProjectSchema, after),
        });
        return after;
      }),
  };
}

/** Inserts a search text into SQLite's full-text index; returns its row, the organization's next one. */
export async function enterSearchText(tx: Tx, { organizationId }: PeerCaller, text: string): Promise<number> {
  const { last_row } = await searchTables(tx)
    .updateTable("project_search_range")
    .set((eb) => ({ last_row: eb("last_row", "+", 1) }))
    .where("organization_id", "=", organizationId)
    .returning("last_row")
    .executeTakeFirstOrThrow();
  await searchTables(tx)
    .insertInto("project_search")
    .values({ rowid: last_row, grams: searchTrigrams(text) })
    .execute();
  return last_row;
}

interface Change {
  readonly id: string;
  readonly kind: "created" | "updated";
  readonly before: string | undefined;
  readonly after: string;
}

/** Inserts the next audit row of the organization's chain, and the event with the same number. */
async function insertRecord(
  tx: Tx,
  keys: ReturnType<typeof openKeys>,
  { organizationId, id }: PeerCaller,
  operation: string,
  change: Change,
): Promise<void> {
  const link = await tx
    .updateTable("organization")
    .set((eb) => ({ sequence: eb("sequence", "+", 1) }))
    .where("id", "=", organizationId)
    .returning(["sequence", "chain_hash"])
    .executeTakeFirstOrThrow();
  const at = Date.now();
  const facts = {
    id: v7(),
    organization_id: organizationId,
    sequence: link.sequence,
    at,
    actor_id: id,
    actor_principal: Principal.USER,
    operation,
    subject_type: "project" as const,
    subject_id: change.id,
    reason: "",
    diff: JSON.stringify(diffJson(change.before, change.after)),
    key_id: keys.keyId,
  };
  const hash = keys.auditMac(auditBytes(facts, link.chain_hash));
  await tx
    .insertInto("audit_log")
    .values({ ...facts, ...packDiff(facts.diff), previous_hash: null, hash })
    .execute();
  await tx.updateTable("organization").set({ chain_hash: hash }).where("id", "=", organizationId).execute();
  await tx
    .insertInto("event")
    .values({
      organization_id: organizationId,
      sequence: link.sequence,
      at,
      kind: change.kind,
      resource_type: "project",
      resource_id: change.id,
    })
    .execute();
}

function changingColumns(project: Project) {
  const body = clone(ProjectSchema, project);
  body.technicalDescription = "";
  delete body.usedBy;
  return {
    desired_phase: project.desiredPhase,
    search_text: projectSearchText(project),
    technical_description: project.technicalDescription,
    body: toBody(ProjectSchema, body),
  };
}
