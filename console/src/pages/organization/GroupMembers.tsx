import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { MemberPicker } from "../../parts/pickers/MemberPicker.tsx";
import { ServiceAccountPicker } from "../../parts/pickers/ServiceAccountPicker.tsx";
import type { PartProps } from "./Organization.tsx";

/** Shows the members of one group. */
export function GroupMembers({
  groupId,
  isAdministrator,
}: Pick<PartProps, "isAdministrator"> & { readonly groupId: string }) {
  const group = useQuery(GroupService.method.getGroup, { group: { case: "id", value: groupId } });
  const members = useInfiniteQuery(GroupService.method.listMemberships, { ...FIRST_PAGE, groupId }, BY_PAGE);
  const settled = { onSettled: () => void members.refetch() };
  const remove = useMutation(GroupService.method.deleteMembership, settled);
  const isKept = group.data?.group?.systemManaged === true;
  const mayChange = isAdministrator && !isKept;
  return (
    <>
      <p className="back">
        <Link to="/organization" search={{ tab: "groups" }}>
          All groups
        </Link>
      </p>
      <Section
        title={group.data?.group?.name ?? "Group"}
        more={
          mayChange && (
            <DialogButton label="Add member">
              {(close) => (
                <AddMember
                  groupId={groupId}
                  onAdded={() => {
                    close();
                    void members.refetch();
                  }}
                />
              )}
            </DialogButton>
          )
        }
      >
        <Problem error={group.error ?? remove.error} />
        {isKept && <p className="dim">This group is managed by SCIM. Change it in your identity provider.</p>}
        <Loaded reading={members}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.members);
            if (rows.length === 0)
              return (
                <Empty title="This group has no members yet.">
                  <p>Members of a group get everything that is shared with it.</p>
                </Empty>
              );
            return (
              <DataTable
                label="Members of the group"
                isStacked
                rows={rows}
                keyOf={({ id }) => id}
                {...moreOf(members)}
                columns={[
                  { head: "Name", cell: ({ name }) => <strong>{name}</strong> },
                  {
                    head: "Kind",
                    cell: ({ subject }) =>
                      subject?.principal === Principal.SERVICE_ACCOUNT ? "Service account" : "Person",
                  },
                  ...(mayChange
                    ? [
                        {
                          head: "Action",
                          cell: ({ id, name }: (typeof rows)[number]) => (
                            <ConfirmButton
                              label="Remove"
                              question={`${name} can no longer decide what this group decides.`}
                              onConfirm={() => remove.mutate({ membershipId: id })}
                              isBusy={remove.isPending && remove.variables.membershipId === id}
                            />
                          ),
                        },
                      ]
                    : []),
                ]}
              />
            );
          }}
        </Loaded>
      </Section>
    </>
  );
}

function AddMember({ groupId, onAdded }: { readonly groupId: string; readonly onAdded: () => void }) {
  const add = useMutation(GroupService.method.createMembership, { onSuccess: onAdded });
  return (
    <div className="stack">
      <Problem error={add.error} />
      <MemberPicker
        label="Add people"
        disabled={add.isPending}
        onChoose={({ id }) => add.mutate({ groupId, subject: { id, principal: Principal.USER } })}
      />
      <ServiceAccountPicker
        label="Add service accounts"
        disabled={add.isPending}
        onChoose={({ id }) => add.mutate({ groupId, subject: { id, principal: Principal.SERVICE_ACCOUNT } })}
      />
    </div>
  );
}
