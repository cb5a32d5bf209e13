import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { ResourceType } from "#gen/service/v1/event_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";

const ROLES = [
  { value: String(ResourceRole.READ), label: "Read" },
  { value: String(ResourceRole.USE), label: "Use" },
  { value: String(ResourceRole.ADMIN), label: "Administer" },
];

interface SharingProps {
  readonly resourceType: ResourceType;
  readonly resourceId: string;
  /** What the members of a group that may use it do with it. */
  readonly use: string;
}

/** With which groups a resource is shared, and as what; the server says who may change it. */
export function Sharing({ resourceType, resourceId, use }: SharingProps) {
  const shares = useInfiniteQuery(
    GroupService.method.listRoleAssignments,
    { ...FIRST_PAGE, resourceType, resourceId },
    BY_PAGE,
  );
  const settled = { onSettled: () => void shares.refetch() };
  const change = useMutation(GroupService.method.updateRoleAssignment, settled);
  const remove = useMutation(GroupService.method.deleteRoleAssignment, settled);
  return (
    <Section title="Shared with">
      <p className="dim lead">
        Administrators and who made it may do everything. The members of a group may read it, use it ({use}),
        or administer it: change, delete and share it as well.
      </p>
      <Problem error={change.error ?? remove.error} />
      <Loaded reading={shares}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.roleAssignments);
          if (rows.length === 0) return <Empty title="It is shared with no group." />;
          return (
            <DataTable
              label="Shared with"
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(shares)}
              columns={[
                { head: "Group", cell: ({ groupId }) => <GroupName groupId={groupId} /> },
                {
                  head: "Role",
                  cell: ({ id, role, groupId }) => (
                    <NativeSelect
                      size="xs"
                      aria-label={`Role of the group ${groupId.slice(-4)}`}
                      value={String(role)}
                      data={ROLES}
                      onChange={(event) =>
                        change.mutate({ roleAssignmentId: id, role: Number(event.currentTarget.value) })
                      }
                    />
                  ),
                },
                { head: "By", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
                {
                  head: "Action",
                  cell: ({ id }) => (
                    <ConfirmButton
                      label="End sharing"
                      question="What the group's members may do by it they lose at once."
                      onConfirm={() => remove.mutate({ roleAssignmentId: id })}
                      isBusy={remove.isPending && remove.variables.roleAssignmentId === id}
                    />
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
      <Share resourceType={resourceType} resourceId={resourceId} onShared={() => void shares.refetch()} />
    </Section>
  );
}

function GroupName({ groupId }: { readonly groupId: string }) {
  const { data } = useQuery(GroupService.method.getGroup, { group: { case: "id", value: groupId } });
  return (
    <Link to="/organization" search={{ tab: "groups", id: groupId }}>
      {data?.group?.name ?? "…"}
    </Link>
  );
}

function Share({
  resourceType,
  resourceId,
  onShared,
}: Pick<SharingProps, "resourceType" | "resourceId"> & { readonly onShared: () => void }) {
  const [groupId, setGroupId] = useState("");
  const [role, setRole] = useState(ResourceRole.READ);
  const groups = useQuery(GroupService.method.listGroups, {
    pagination: { pageSize: 100 },
    filter: { excludeAssignedToResource: { resourceType, resourceId } },
  });
  const share = useMutation(GroupService.method.createRoleAssignment, {
    onSuccess() {
      setGroupId("");
      onShared();
      void groups.refetch();
    },
  });
  const choices = groups.data?.groups ?? [];
  return (
    <form
      className="stack share"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        share.mutate({ groupId, resourceType, resourceId, role });
      }}
    >
      <Problem error={groups.error ?? share.error} />
      <div className="row">
        <NativeSelect
          aria-label="Group to share with"
          size="xs"
          value={groupId}
          onChange={(event) => setGroupId(event.currentTarget.value)}
          data={[
            { value: "", label: choices.length === 0 ? "No other group" : "Choose a group" },
            ...choices.map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        <NativeSelect
          aria-label="As what"
          size="xs"
          value={String(role)}
          onChange={(event) => setRole(Number(event.currentTarget.value))}
          data={ROLES}
        />
        <Button size="xs" type="submit" disabled={groupId === ""} loading={share.isPending}>
          Share
        </Button>
      </div>
    </form>
  );
}
