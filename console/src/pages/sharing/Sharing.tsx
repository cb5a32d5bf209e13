import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { ResourceType } from "#gen/service/v1/event_pb.js";
import { ResourceRole } from "#gen/service/v1/group_pb.js";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { queries } from "../../api/server.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { GroupName, GroupPicker } from "../../parts/pickers/GroupPicker.tsx";

const ROLES = [
  { value: String(ResourceRole.READ), label: "Read" },
  { value: String(ResourceRole.USE), label: "Use" },
  { value: String(ResourceRole.ADMIN), label: "Administer" },
];

interface SharingProps {
  readonly resourceType: ResourceType;
  readonly resourceId: string;
  /** What members of a group with the user role can do with it. */
  readonly use: string;
}

/** Shows which groups a resource is shared with, and in which roles; the server decides who may change it. */
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
        Administrators and the creator can do everything. Members of a group can read it, use it ({use}), or
        administer it, which includes changing, deleting and sharing it.
      </p>
      <Problem error={change.error ?? remove.error} />
      <Loaded reading={shares}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.roleAssignments);
          if (rows.length === 0) return <Empty title="It is not shared with any group." />;
          return (
            <DataTable
              label="Shared with"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(shares)}
              columns={[
                {
                  head: "Group",
                  cell: ({ groupId }) => (
                    <Link to="/organization" search={{ tab: "groups", id: groupId }}>
                      <GroupName id={groupId} />
                    </Link>
                  ),
                },
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
                      question="The group's members lose this access at once."
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

function Share({
  resourceType,
  resourceId,
  onShared,
}: Pick<SharingProps, "resourceType" | "resourceId"> & { readonly onShared: () => void }) {
  const [role, setRole] = useState(ResourceRole.READ);
  const share = useMutation(GroupService.method.createRoleAssignment, {
    onSuccess() {
      onShared();
      void queries.invalidateQueries();
    },
  });
  return (
    <section className="stack share" aria-label="Share with another group">
      <NativeSelect
        label="Role"
        size="xs"
        value={String(role)}
        onChange={(event) => setRole(Number(event.currentTarget.value))}
        data={ROLES}
      />
      <GroupPicker
        label="Group"
        verb="Share with"
        size="xs"
        filter={{ excludeAssignedToResource: { resourceType, resourceId } }}
        disabled={share.isPending}
        onChoose={({ id }) => share.mutate({ groupId: id, resourceType, resourceId, role })}
      />
      <Problem error={share.error} />
    </section>
  );
}
