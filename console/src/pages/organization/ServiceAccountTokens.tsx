import { useInfiniteQuery, useMutation, useQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ShownOnce } from "../../parts/ShownOnce.tsx";
import { Ago } from "../../parts/Time.tsx";
import type { PartProps } from "./Organization.tsx";

const DAY_SECONDS = 86_400;

/** The tokens of one service account. */
export function ServiceAccountTokens({
  serviceAccountId,
  isAdministrator,
}: PartProps & { readonly serviceAccountId: string }) {
  const account = useQuery(ServiceAccountService.method.listServiceAccounts, {
    filter: { serviceAccountIds: [serviceAccountId], includeSuspended: true },
  });
  const tokens = useInfiniteQuery(
    ServiceAccountService.method.listServiceAccountTokens,
    { ...FIRST_PAGE, serviceAccountId },
    BY_PAGE,
  );
  const remove = useMutation(ServiceAccountService.method.deleteServiceAccountToken, {
    onSettled: () => void tokens.refetch(),
  });
  return (
    <>
      <p className="back">
        <Link to="/organization" search={{ tab: "accounts" }}>
          All service accounts
        </Link>
      </p>
      <Section
        title={`Tokens of ${account.data?.serviceAccounts[0]?.name ?? "the service account"}`}
        more={
          isAdministrator && (
            <DialogButton label="Create token" size={560}>
              {(close) => (
                <CreateToken
                  serviceAccountId={serviceAccountId}
                  onCreated={() => void tokens.refetch()}
                  onClose={close}
                />
              )}
            </DialogButton>
          )
        }
      >
        <Problem error={account.error ?? remove.error} />
        <Loaded reading={tokens}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.tokens);
            if (rows.length === 0) {
              return (
                <Empty title="This service account has no token.">
                  <p>A program needs one to act as it.</p>
                </Empty>
              );
            }
            return (
              <DataTable
                label="Tokens"
                rows={rows}
                keyOf={({ id }) => id}
                {...moreOf(tokens)}
                columns={[
                  {
                    head: "Description",
                    cell: ({ description }) => description || <span className="dim">none</span>,
                  },
                  { head: "Created", cell: ({ createdAt }) => <Ago at={createdAt} />, isExtra: true },
                  { head: "Last used", cell: ({ lastUsed }) => <Ago at={lastUsed} />, isExtra: true },
                  { head: "Ends", cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
                  {
                    head: "Action",
                    cell: ({ id }) => (
                      <ConfirmButton
                        label="Delete token"
                        question="Whatever uses this token is refused at once."
                        onConfirm={() => remove.mutate({ serviceAccountTokenId: id })}
                        isBusy={remove.isPending && remove.variables.serviceAccountTokenId === id}
                      />
                    ),
                  },
                ]}
              />
            );
          }}
        </Loaded>
      </Section>
    </>
  );
}

/** Makes a token and shows it once: it is kept nowhere in the page. */
function CreateToken({
  serviceAccountId,
  onCreated,
  onClose,
}: {
  readonly serviceAccountId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}) {
  const [description, setDescription] = useState("");
  const [days, setDays] = useState("30");
  const [token, setToken] = useState("");
  const create = useMutation(ServiceAccountService.method.createServiceAccountToken, {
    gcTime: 0,
    onSuccess({ token }) {
      setToken(token);
      create.reset();
      onCreated();
    },
  });
  if (token !== "") {
    const note = "Copy the token now: it is not shown again.";
    return <ShownOnce note={note} text={token} what="token" onClose={onClose} />;
  }
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        const validFor = { seconds: BigInt(Number(days) * DAY_SECONDS) };
        create.mutate({ serviceAccountId, description, validFor });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="What it is for"
        data-autofocus
        maxLength={500}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <NativeSelect
        label="Valid for"
        value={days}
        onChange={(event) => setDays(event.currentTarget.value)}
        data={["7", "30", "90"].map((value) => ({ value, label: `${value} days` }))}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create token
        </Button>
      </div>
    </form>
  );
}
