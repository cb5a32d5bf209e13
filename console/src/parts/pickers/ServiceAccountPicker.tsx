import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { FOUND } from "./page-size.ts";
import { type Choice, SearchPicker, useTyped } from "./SearchPicker.tsx";

interface ServiceAccountPickerProps {
  readonly label: string;
  readonly verb?: string;
  readonly disabled?: boolean;
  readonly onChoose: (choice: Choice) => void;
}

/** Searches the service accounts of the organization by name. */
export function ServiceAccountPicker(props: ServiceAccountPickerProps) {
  const typed = useTyped();
  const { data, error } = useQuery(
    ServiceAccountService.method.listServiceAccounts,
    { filter: { search: typed.search }, pagination: { pageSize: FOUND } },
    { placeholderData: keepPreviousData },
  );
  return (
    <SearchPicker
      {...props}
      typed={typed}
      found={data?.serviceAccounts}
      hasMore={!!data?.pagination?.nextToken}
      error={error}
      none={typed.search === "" ? "There is no service account." : "No service account has a matching name."}
    />
  );
}
