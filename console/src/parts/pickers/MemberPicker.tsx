import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import { usePerson } from "../../api/person.tsx";
import { FOUND, pageSizeWith } from "./page-size.ts";
import { type Choice, SearchPicker, useTyped } from "./SearchPicker.tsx";

interface MemberPickerProps {
  readonly label: string;
  /** Ids of users that are already chosen. */
  readonly chosen?: readonly string[];
  readonly verb?: string;
  readonly disabled?: boolean;
  readonly onChoose: (choice: Choice) => void;
}

/** Searches the active members of the organization by name and mail address. */
export function MemberPicker({ chosen = [], ...props }: MemberPickerProps) {
  const typed = useTyped();
  const { user } = usePerson();
  const organizationId = user?.organizationId ?? "";
  const { data, error } = useQuery(
    OrganizationService.method.listMembers,
    {
      organizationId,
      filter: { search: typed.search, statuses: [UserStatus.ACTIVE] },
      pagination: { pageSize: pageSizeWith(chosen) },
    },
    { enabled: organizationId !== "", placeholderData: keepPreviousData },
  );
  const found = data?.members
    .filter(({ userId }) => !chosen.includes(userId))
    .map(({ userId, fullName, email }) => ({ id: userId, name: `${fullName} (${email})` }));
  return (
    <SearchPicker
      {...props}
      placeholder="Search by name or email address"
      typed={typed}
      found={found?.slice(0, FOUND)}
      hasMore={!!data?.pagination?.nextToken || (found?.length ?? 0) > FOUND}
      error={error}
      none={typed.search === "" ? "There is nobody else." : "Nobody else has a matching name or address."}
    />
  );
}
