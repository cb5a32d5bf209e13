import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, TextInput } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { GroupService } from "#gen/service/v1/group_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { Ago } from "../../parts/Time.tsx";
import { GroupMembers } from "./GroupMembers.tsx";
import type { PartProps } from "./Organization.tsx";

/** Lists the groups of the organization; choosing one shows its members. */
export function Groups(props: PartProps) {
  const { id } = useSearch({ from: "/organization" });
  return id === undefined ? (
    <GroupList {...props} />
  ) : (
    <GroupMembers groupId={id} isAdministrator={props.isAdministrator} />
  );
}

function GroupList({ organizationId, isAdministrator }: PartProps) {
  const groups = useInfiniteQuery(GroupService.method.listGroups, FIRST_PAGE, BY_PAGE);
  const remove = useMutation(GroupService.method.deleteGroup, { onSettled: () => void groups.refetch() });
  return (
    <Section
      title="Groups"
      more={
        isAdministrator && (
          <DialogButton label="Create group">
            {(close) => (
              <CreateGroup
                organizationId={organizationId}
                onCreated={() => {
                  close();
                  void groups.refetch();
                }}
              />
            )}
          </DialogButton>
        )
      }
    >
      <Problem error={remove.error} />
      <Loaded reading={groups}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.groups);
          if (rows.length === 0) {
            return (
              <Empty title="There are no groups yet.">
                <p>Policies and approvals refer to groups: who decides, and whose agents get tools.</p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Groups"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(groups)}
              columns={[
                {
                  head: "Name",
                  cell: ({ id, name }) => (
                    <Link to="/organization" search={{ tab: "groups", id }} className="row-link">
                      {name}
                    </Link>
                  ),
                },
                { head: "Description", cell: ({ description }) => description, isExtra: true },
                { head: "Members", cell: ({ memberCount }) => memberCount, isNumeric: true },
                { head: "Changed", cell: ({ updatedAt }) => <Ago at={updatedAt} />, isExtra: true },
                ...(isAdministrator
                  ? [
                      {
                        head: "Action",
                        cell: ({ id, name, memberCount, systemManaged }: (typeof rows)[number]) =>
                          systemManaged ? (
                            <span className="dim">managed by SCIM</span>
                          ) : (
                            <ConfirmButton
                              label="Delete"
                              question={`Deletes ${name} with ${memberCount} memberships. Policies and approvals that name the group treat it as empty.`}
                              onConfirm={() => remove.mutate({ groupId: id })}
                              isBusy={remove.isPending && remove.variables.groupId === id}
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
  );
}

function CreateGroup({
  organizationId,
  onCreated,
}: {
  readonly organizationId: string;
  readonly onCreated: () => void;
}) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const create = useMutation(GroupService.method.createGroup, { onSuccess: onCreated });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        create.mutate({ organizationId, name, description });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="Name"
        required
        data-autofocus
        minLength={3}
        maxLength={80}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Description"
        maxLength={255}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create group
        </Button>
      </div>
    </form>
  );
}
