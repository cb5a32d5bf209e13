import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { ProjectService } from "#gen/service/v1/project_service_pb.js";
import { FOUND, pageSizeWith } from "./page-size.ts";
import { type Choice, SearchPicker, useTyped } from "./SearchPicker.tsx";

interface ProjectPickerProps {
  readonly label: string;
  /** Ids of projects that are already chosen. */
  readonly chosen?: readonly string[];
  readonly verb?: string;
  readonly onChoose: (choice: Choice) => void;
}

/** Searches the projects that the person may use, by name. */
export function ProjectPicker({ chosen = [], ...props }: ProjectPickerProps) {
  const typed = useTyped();
  const { data, error } = useQuery(
    ProjectService.method.listProjects,
    {
      filter: { search: typed.search },
      pagination: { pageSize: pageSizeWith(chosen) },
    },
    { placeholderData: keepPreviousData },
  );
  const found = data?.projects
    .filter(({ id }) => !chosen.includes(id))
    .map(({ id, metadata }) => ({ id, name: metadata?.name ?? id }));
  return (
    <SearchPicker
      {...props}
      typed={typed}
      found={found?.slice(0, FOUND)}
      hasMore={!!data?.pagination?.nextToken || (found?.length ?? 0) > FOUND}
      error={error}
      none={typed.search === "" ? "There is no other project." : "No other project has a matching name."}
    />
  );
}

/** Shows the name of a project; its id when it cannot be read. */
export function ProjectName({ id }: { readonly id: string }) {
  const { data, error } = useQuery(
    ProjectService.method.getProject,
    { projectId: id },
    { staleTime: 600_000, refetchInterval: false, retry: false },
  );
  if (error) return <code>{id}</code>;
  return <span>{data?.project?.metadata?.name ?? "…"}</span>;
}
