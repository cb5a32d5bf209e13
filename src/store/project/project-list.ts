import type { Project } from "#gen/service/v1/project_pb.js";
import type { ListedRow } from "../../domain/page.ts";
import { listedRows } from "../listed-row.ts";
import { prepared } from "../prepared.ts";
import type { Reader, Scope, Store } from "../store.ts";
import { storedProject } from "./project.ts";
import { isEmptyFilter } from "./project-filter.ts";
import {
  directions,
  type FoundProject,
  PROJECT_COLUMNS,
  type ProjectOrder,
  type ProjectPage,
} from "./project-page.ts";

/**
 * Returns up to `limit` projects, as reads return them, after `after`, and the number of
 * matches, counted up to `countLimit`. In the order of popularity, ties are ordered by ascending id
 * when the score descends, and exactly mirrored when it ascends. With a filter it is a search, and
 * fails as one.
 */
export async function findProjectPage(
  store: Pick<Store, "reader" | "projectSearch">,
  scope: Scope,
  page: ProjectPage,
  signal: () => AbortSignal,
): Promise<{ projects: ListedRow<Project>[]; count: number | undefined }> {
  const { rows, count } = isEmptyFilter(page.filter)
    ? await unfilteredPage(store.reader, scope, page)
    : await store.projectSearch.find(scope, page, signal());
  const positionOf = ({ id, popularity }: FoundProject) => ({
    key: page.order.field === "id" ? 0 : popularity,
    id,
  });
  const projects = listedRows(store.reader, "project", rows, positionOf, storedProject);
  return { projects, count };
}

async function unfilteredPage(db: Reader, scope: Scope, page: ProjectPage) {
  const parameters = {
    organizationId: scope.organizationId,
    key: page.after?.key ?? 0,
    id: page.after?.id ?? "",
    limit: page.limit,
  };
  const { first, ties, behind } = SCANS[page.order.field][page.order.direction];
  let rows: FoundProject[];
  if (page.after) {
    rows = ties ? await ties(db, parameters) : [];
    if (rows.length < page.limit) {
      rows = [...rows, ...(await behind(db, { ...parameters, limit: page.limit - rows.length }))];
    }
  } else {
    rows = await first(db, parameters);
  }
  const counted =
    page.countLimit !== undefined && (await countAll(db, { ...parameters, limit: page.countLimit }));
  return { rows, count: counted ? (counted[0]?.count ?? 0) : undefined };
}

type Direction = ProjectOrder["direction"];
interface ScanStart {
  organizationId: string;
  key: number;
  id: string;
  limit: number;
}

function scanById(direction: Direction) {
  const { id: byId } = directions({ field: "id", direction });
  const walk = (isFirst: boolean) =>
    prepared<ScanStart, FoundProject>((db, { organizationId, id, limit }) => {
      const all = db
        .selectFrom("project")
        .select(PROJECT_COLUMNS)
        .where("organization_id", "=", organizationId);
      const rest = isFirst ? all : all.where("id", byId.behind, id);
      return rest.orderBy("id", byId.direction).limit(limit);
    });
  return { first: walk(true), ties: undefined, behind: walk(false) };
}

/**
 * Scans the index twice, for the ties of the last score and for the rows after them: an OR of both
 * would scan the table.
 */
function scanByPopularity(direction: Direction) {
  const { popularity: byScore, id: byId } = directions({ field: "popularity", direction });
  const walk = (part: "first" | "ties" | "behind") =>
    prepared<ScanStart, FoundProject>((db, { organizationId, key, id, limit }) => {
      let query = db
        .selectFrom("project")
        .select(PROJECT_COLUMNS)
        .where("organization_id", "=", organizationId);
      if (part === "ties") {
        query = query.where("popularity", "=", key).where("id", byId.behind, id);
      } else if (part === "behind") {
        query = query.where("popularity", byScore.behind, key);
      }
      return query.orderBy("popularity", byScore.direction).orderBy("id", byId.direction).limit(limit);
    });
  return { first: walk("first"), ties: walk("ties"), behind: walk("behind") };
}

const SCANS = {
  id: { asc: scanById("asc"), desc: scanById("desc") },
  popularity: { asc: scanByPopularity("asc"), desc: scanByPopularity("desc") },
} as const;

const countAll = prepared<ScanStart, { count: number }>((db, { organizationId, limit }) =>
  db
    .selectFrom(
      db
        .selectFrom("project")
        .select("id")
        .where("organization_id", "=", organizationId)
        .limit(limit)
        .as("all"),
    )
    .select((eb) => eb.fn.countAll<number>().as("count")),
);
