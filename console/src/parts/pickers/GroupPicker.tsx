import type { MessageInitShape } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { GroupService, type ListGroupsRequest_FilterSchema } from "#gen/service/v1/group_service_pb.js";
import { FOUND, pageSizeWith } from "./page-size.ts";
import { type Choice, SearchPicker, useTyped } from "./SearchPicker.tsx";

interface GroupPickerProps {
  readonly label: string;
  /** Ids of groups that are already chosen. */
  readonly chosen?: readonly string[];
  /** Restricts which groups are offered, in addition to the typed text. */
  readonly filter?: MessageInitShape<typeof ListGroupsRequest_FilterSchema>;
  readonly verb?: string;
  readonly size?: "xs" | "sm";
  readonly disabled?: boolean;
  readonly onChoose: (choice: Choice) => void;
}

/** Searches the groups of the organization by name. */
export function GroupPicker({ chosen = [], filter = {}, ...props }: GroupPickerProps) {
  const typed = useTyped();
  const { data, error } = useQuery(
    GroupService.method.listGroups,
    {
      filter: { ...filter, search: typed.search },
      pagination: { pageSize: pageSizeWith(chosen) },
    },
    { placeholderData: keepPreviousData },
  );
  const found = data?.groups.filter(({ id }) => !chosen.includes(id));
  return (
    <SearchPicker
      {...props}
      typed={typed}
      found={found?.slice(0, FOUND)}
      hasMore={!!data?.pagination?.nextToken || (found?.length ?? 0) > FOUND}
      error={error}
      none={typed.search === "" ? "There is no other group." : "No other group has a matching name."}
    />
  );
}

/** Shows the name of a group; its id when it cannot be read. */
export function GroupName({ id }: { readonly id: string }) {
  const { data, error } = useQuery(
    GroupService.method.getGroup,
    { group: { case: "id", value: id } },
    { retry: false },
  );
  if (error) return <code>{id}</code>;
  return <>{data?.group?.name ?? "…"}</>;
}
