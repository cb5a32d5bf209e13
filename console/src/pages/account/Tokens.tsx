import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, Modal, NativeSelect, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useState } from "react";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ShownOnce } from "../../parts/ShownOnce.tsx";
import { Ago } from "../../parts/Time.tsx";

const DAY_SECONDS = 86_400;

/** The person's own access tokens, for programs and the command line. */
export function Tokens({ userId }: { readonly userId: string }) {
  const [isOpen, dialog] = useDisclosure();
  const tokens = useInfiniteQuery(
    UserService.method.listPersonalAccessTokens,
    { filter: { userIds: [userId] }, pagination: { pageSize: 50 } },
    {
      pageParamKey: "pagination",
      getNextPageParam: ({ pagination }) =>
        pagination?.nextToken ? { pageSize: 50, token: pagination.nextToken } : undefined,
    },
  );
  const remove = useMutation(UserService.method.deletePersonalAccessToken, {
    onSettled: () => tokens.refetch(),
  });
  const add = (
    <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={dialog.open}>
      Create token
    </Button>
  );
  return (
    <Section title="Access tokens" more={add}>
      <Problem error={remove.error} />
      <Loaded reading={tokens}>
        {({ pages }) => {
          const rows = pages.flatMap(({ personalAccessTokens }) => personalAccessTokens);
          if (rows.length === 0) {
            return (
              <Empty title="You have no access token.">
                <p>Programs and the command line call the server with one. It acts with your rights.</p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Access tokens"
              rows={rows}
              keyOf={({ id }) => id}
              onMore={tokens.hasNextPage ? () => void tokens.fetchNextPage() : undefined}
              isLoadingMore={tokens.isFetchingNextPage}
              columns={[
                {
                  head: "Description",
                  cell: ({ description, readOnly }) => (
                    <>
                      {description || <span className="dim">none</span>}
                      {readOnly && <span className="dim"> (read-only)</span>}
                    </>
                  ),
                },
                { head: "Created", cell: ({ createdAt }) => <Ago at={createdAt} />, isExtra: true },
                { head: "Last used", cell: ({ lastUsed }) => <Ago at={lastUsed} />, isExtra: true },
                { head: "Ends", cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
                {
                  head: "Action",
                  cell: ({ id }) => (
                    <ConfirmButton
                      label="Delete token"
                      question="Whatever uses this token is refused at once, and sessions that began with it end."
                      onConfirm={() => remove.mutate({ personalAccessTokenId: id })}
                      isBusy={remove.isPending && remove.variables.personalAccessTokenId === id}
                    />
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
      <Modal
        opened={isOpen}
        onClose={dialog.close}
        title="Create access token"
        transitionProps={{ duration: 120 }}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {isOpen && <CreateToken onCreated={() => void tokens.refetch()} onClose={dialog.close} />}
      </Modal>
    </Section>
  );
}

/** Makes a token and shows it once: it is kept nowhere in the page, and gone when the dialog closes. */
function CreateToken({
  onCreated,
  onClose,
}: {
  readonly onCreated: () => void;
  readonly onClose: () => void;
}) {
  const [description, setDescription] = useState("");
  const [days, setDays] = useState("30");
  const [readOnly, setReadOnly] = useState(false);
  const [token, setToken] = useState("");
  const create = useMutation(UserService.method.createPersonalAccessToken, {
    gcTime: 0,
    onSuccess({ token }) {
      setToken(token);
      create.reset();
      onCreated();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate({ description, readOnly, validFor: { seconds: BigInt(Number(days) * DAY_SECONDS) } });
  };
  if (token !== "") {
    return (
      <ShownOnce
        note="Copy the token now: it is not shown again."
        text={token}
        what="token"
        onClose={onClose}
      />
    );
  }
  return (
    <form className="stack" onSubmit={submit}>
      <Problem error={create.error} />
      <TextInput
        label="What it is for"
        value={description}
        maxLength={500}
        onChange={(event) => setDescription(event.currentTarget.value)}
        data-autofocus
      />
      <NativeSelect
        label="Valid for"
        value={days}
        onChange={(event) => setDays(event.currentTarget.value)}
        data={["7", "30", "90"].map((value) => ({ value, label: `${value} days` }))}
      />
      <Checkbox
        label="Read-only: it may look, and change nothing"
        checked={readOnly}
        onChange={(event) => setReadOnly(event.currentTarget.checked)}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create token
        </Button>
      </div>
    </form>
  );
}
