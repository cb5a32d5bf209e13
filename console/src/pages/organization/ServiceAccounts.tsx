import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import type { PartProps } from "./Organization.tsx";
import { ServiceAccountTokens } from "./ServiceAccountTokens.tsx";

const DAY_MS = 86_400_000;

/** Lists the service accounts of the organization; choosing one shows its tokens. */
export function ServiceAccounts(props: PartProps) {
  const { id } = useSearch({ from: "/organization" });
  return id === undefined ? (
    <AccountList {...props} />
  ) : (
    <ServiceAccountTokens serviceAccountId={id} {...props} />
  );
}

function AccountList({ isAdministrator }: PartProps) {
  const accounts = useInfiniteQuery(
    ServiceAccountService.method.listServiceAccounts,
    { ...FIRST_PAGE, filter: { includeSuspended: true } },
    BY_PAGE,
  );
  const remove = useMutation(ServiceAccountService.method.deleteServiceAccount, {
    onSettled: () => void accounts.refetch(),
  });
  return (
    <Section
      title="Service accounts"
      more={
        isAdministrator && (
          <DialogButton label="Create service account">
            {(close) => (
              <CreateAccount
                onCreated={() => {
                  close();
                  void accounts.refetch();
                }}
              />
            )}
          </DialogButton>
        )
      }
    >
      <Problem error={remove.error} />
      <Loaded reading={accounts}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.serviceAccounts);
          if (rows.length === 0) {
            return (
              <Empty title="There are no service accounts yet.">
                <p>
                  Programs and workflows can act as a service account, so that their work does not belong to a
                  person.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Service accounts"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(accounts)}
              columns={[
                {
                  head: "Name",
                  cell: ({ id, name, provisioning }) => (
                    <>
                      <Link to="/organization" search={{ tab: "accounts", id }} className="row-link">
                        {name}
                      </Link>
                      {provisioning && <span className="dim"> (SCIM)</span>}
                    </>
                  ),
                },
                { head: "Description", cell: ({ description }) => description, isExtra: true },
                {
                  head: "State",
                  cell: ({ suspended }) =>
                    suspended ? (
                      <State tone="failed" word="Suspended" />
                    ) : (
                      <State tone="done" word="Active" />
                    ),
                },
                { head: "Created by", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
                { head: "Expires", cell: ({ validUntil }) => <Ago at={validUntil} /> },
                ...(isAdministrator
                  ? [
                      {
                        head: "Action",
                        cell: ({ id, name }: (typeof rows)[number]) => (
                          <ConfirmButton
                            label="Delete"
                            question={`Programs that act as ${name} lose access at once, and workflows that run as it no longer start.`}
                            onConfirm={() => remove.mutate({ serviceAccountId: id })}
                            isBusy={remove.isPending && remove.variables.serviceAccountId === id}
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

function CreateAccount({ onCreated }: { readonly onCreated: () => void }) {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [days, setDays] = useState("365");
  const [provisioning, setProvisioning] = useState(false);
  const create = useMutation(ServiceAccountService.method.createServiceAccount, { onSuccess: onCreated });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        const validUntil = timestampFromMs(Date.now() + Number(days) * DAY_MS);
        create.mutate({ name, description, validUntil, provisioning });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={64}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Description"
        maxLength={500}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <NativeSelect
        label="Ends after"
        value={days}
        onChange={(event) => setDays(event.currentTarget.value)}
        data={[
          { value: "30", label: "30 days" },
          { value: "90", label: "90 days" },
          { value: "365", label: "1 year" },
        ]}
      />
      <Checkbox
        label="For SCIM: can only provision people and groups"
        checked={provisioning}
        onChange={(event) => setProvisioning(event.currentTarget.checked)}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create service account
        </Button>
      </div>
    </form>
  );
}
