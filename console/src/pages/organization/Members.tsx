import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type OrganizationMember, OrganizationRole as Role } from "#gen/service/v1/organization_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { usePerson } from "../../api/person.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { SearchField } from "../../parts/SearchField.tsx";
import { State, type Tone } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import type { PartProps } from "./Organization.tsx";

/** Milliseconds without a key press before a search starts. */
const TYPED_MS = 200;

const STATES: Readonly<Partial<Record<UserStatus, readonly [Tone, string]>>> = {
  [UserStatus.ACTIVE]: ["done", "Active"],
  [UserStatus.SUSPENDED]: ["failed", "Suspended"],
  [UserStatus.LEFT]: ["stopped", "Left"],
};

/** Lists the members and their roles; an administrator can suspend or remove them. */
export function Members({ organizationId, isAdministrator }: PartProps) {
  const { q = "" } = useSearch({ from: "/organization" });
  const navigate = useNavigate();
  const [search] = useDebouncedValue(q, TYPED_MS);
  const members = useInfiniteQuery(
    OrganizationService.method.listMembers,
    {
      ...FIRST_PAGE,
      organizationId,
      filter: { search, statuses: [UserStatus.ACTIVE, UserStatus.SUSPENDED] },
    },
    { ...BY_PAGE, placeholderData: keepPreviousData },
  );
  const settled = { onSettled: () => void members.refetch() };
  const setRole = useMutation(OrganizationService.method.setRole, settled);
  const suspend = useMutation(UserService.method.setSuspended, settled);
  const remove = useMutation(OrganizationService.method.removeMember, settled);
  const { user: me } = usePerson();
  const role = (member: OrganizationMember) =>
    isAdministrator ? (
      <NativeSelect
        size="xs"
        w={140}
        aria-label={`Role of ${member.fullName}`}
        value={String(member.role)}
        onChange={({ currentTarget }) =>
          setRole.mutate({ organizationId, userId: member.userId, role: Number(currentTarget.value) })
        }
        data={[
          { value: String(Role.ADMIN), label: "Administrator" },
          { value: String(Role.MEMBER), label: "Member" },
        ]}
      />
    ) : (
      <span>{member.role === Role.ADMIN ? "Administrator" : "Member"}</span>
    );
  const actions = ({ userId, fullName, status }: OrganizationMember) =>
    userId !== me?.id && (
      <div className="row-actions">
        {status === UserStatus.SUSPENDED ? (
          <ConfirmButton
            label="Lift suspension"
            question={`${fullName} gets access to the organization again, also with existing access tokens.`}
            onConfirm={() => suspend.mutate({ userId, suspended: false })}
            isBusy={suspend.isPending && suspend.variables.userId === userId}
          />
        ) : (
          <ConfirmButton
            label="Suspend"
            question={`${fullName} loses access at once, with every token and session, and their running work is stopped. You can lift the suspension.`}
            onConfirm={() => suspend.mutate({ userId, suspended: true })}
            isBusy={suspend.isPending && suspend.variables.userId === userId}
          />
        )}
        <ConfirmButton
          label="Remove"
          question={`Deletes the access tokens of ${fullName} in the organization and stops their agent runs. What they created stays.`}
          onConfirm={() => remove.mutate({ organizationId, userId })}
          isBusy={remove.isPending && remove.variables.userId === userId}
        />
      </div>
    );
  return (
    <>
      <SearchField
        label="Search members"
        placeholder="Search names and addresses"
        className="search"
        value={q}
        onType={(typed) => void navigate({ to: "/organization", search: { q: typed }, replace: true })}
      />
      <Problem error={setRole.error ?? suspend.error ?? remove.error} />
      <Loaded reading={members}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.members);
          if (rows.length === 0) return <Empty title={`No member has “${q}” in their name or address.`} />;
          return (
            <DataTable
              label="Members"
              isStacked
              rows={rows}
              keyOf={({ userId }) => userId}
              {...moreOf(members)}
              columns={[
                {
                  head: "Name",
                  cell: ({ fullName, userId }) => (
                    <>
                      <strong>{fullName}</strong>
                      {userId === me?.id && <span className="dim"> (you)</span>}
                    </>
                  ),
                },
                { head: "Address", cell: ({ email }) => email, isExtra: true },
                {
                  head: "State",
                  cell: ({ status }) => {
                    const [tone, word] = STATES[status] ?? ["waiting", "Unknown"];
                    return <State tone={tone} word={word} />;
                  },
                },
                { head: "Role", cell: role },
                { head: "Since", cell: ({ memberSince }) => <Ago at={memberSince} />, isExtra: true },
                ...(isAdministrator ? [{ head: "Action", cell: actions }] : []),
              ]}
            />
          );
        }}
      </Loaded>
    </>
  );
}
