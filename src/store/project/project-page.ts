import type { PagePosition } from "../../domain/page.ts";
import { type BodyRow, bodyColumns } from "../listed-row.ts";
import type { ProjectFilter } from "./project-filter.ts";
import type { ProjectTable } from "./project-schema.ts";

/** The order of a list of projects; ties of popularity are ordered by id. */
export interface ProjectOrder {
  readonly field: "id" | "popularity";
  readonly direction: "asc" | "desc";
}

/** One page of a list, and its options. */
export interface ProjectPage {
  readonly filter: ProjectFilter;
  readonly order: ProjectOrder;
  readonly after: PagePosition | undefined;
  readonly limit: number;
  /** Limit of counting; undefined when no count is requested. */
  readonly countLimit: number | undefined;
}

export type FoundProject = Pick<ProjectTable, "popularity" | "used_by"> & BodyRow;

export interface FoundProjects {
  readonly rows: FoundProject[];
  readonly count: number | undefined;
}

/** The columns of a project in a list. */
export const PROJECT_COLUMNS = [
  "project.id",
  "project.popularity",
  ...bodyColumns("project"),
  "project.used_by",
] as const;

/** Returns the directions of an order, and the comparison by which a row comes after another. */
export function directions({ field, direction }: ProjectOrder) {
  const way = (one: "asc" | "desc") => ({ direction: one, behind: one === "asc" ? ">" : "<" }) as const;
  const other = direction === "asc" ? "desc" : "asc";
  return { popularity: way(direction), id: way(field === "id" ? direction : other) };
}
