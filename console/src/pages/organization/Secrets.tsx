import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Secret } from "#gen/service/v1/secret_pb.js";
import { SecretService } from "#gen/service/v1/secret_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { ConfirmButton } from "../../parts/ConfirmButton.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { Ago } from "../../parts/Time.tsx";
import type { PartProps } from "./Organization.tsx";

/** The organization's secrets by name: their values are written and never read back. */
export function Secrets({ organizationId, isAdministrator }: PartProps) {
  const secrets = useInfiniteQuery(
    SecretService.method.listSecrets,
    { ...FIRST_PAGE, filter: { scope: { scope: { case: "organizationId", value: organizationId } } } },
    BY_PAGE,
  );
  const remove = useMutation(SecretService.method.deleteSecret, { onSettled: () => void secrets.refetch() });
  const read = () => void secrets.refetch();
  return (
    <Section
      title="Secrets"
      more={
        isAdministrator && (
          <DialogButton label="Create secret">
            {(close) => <CreateSecret organizationId={organizationId} onCreated={read} onClose={close} />}
          </DialogButton>
        )
      }
    >
      <Problem error={remove.error} />
      <Loaded reading={secrets}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.secrets);
          if (rows.length === 0) {
            return (
              <Empty title="The organization has no secret yet.">
                <p>
                  A secret is there in every environment of the organization, as a variable or a file, or is
                  put into requests without work ever having it. Its value is never shown again, and covered
                  in logs.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Secrets"
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(secrets)}
              columns={[
                { head: "Name", cell: ({ name }) => <code>{name}</code> },
                { head: "Is there as", cell: mountOf },
                { head: "Made by", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
                { head: "Value changed", cell: ({ updatedAt }) => <Ago at={updatedAt} />, isExtra: true },
                ...(isAdministrator
                  ? [
                      {
                        head: "Action",
                        cell: ({ id, name }: Secret) => (
                          <div className="row-actions">
                            <DialogButton label="Replace value" isMain={false}>
                              {(close) => <ReplaceValue secretId={id} onReplaced={read} onClose={close} />}
                            </DialogButton>
                            <ConfirmButton
                              label="Delete"
                              question={`Environments that start from now on have no ${name}. Those that run keep it.`}
                              onConfirm={() => remove.mutate({ secretId: id })}
                              isBusy={remove.isPending && remove.variables.secretId === id}
                            />
                          </div>
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

function mountOf({ mount, credentialProxy }: Secret) {
  if (credentialProxy)
    return (
      <>
        the header <code>{credentialProxy.header}</code> of requests to{" "}
        {credentialProxy.targetHosts.join(", ")}
      </>
    );
  switch (mount.case) {
    case "filePath":
      return (
        <>
          the file <code>{mount.value}</code>
        </>
      );
    case "environmentVariable":
      return "a variable of the environment";
    case "containerRegistryBasicAuthHost":
      return `the login of ${mount.value}`;
    default:
      return "a name for the API alone";
  }
}

function CreateSecret({
  organizationId,
  onCreated,
  onClose,
}: {
  readonly organizationId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [kind, setKind] = useState("environmentVariable");
  const [path, setPath] = useState("");
  const [hosts, setHosts] = useState("");
  const [header, setHeader] = useState("Authorization");
  const isPutIn = kind === "header" || kind === "headerAndVariable";
  const create = useMutation(SecretService.method.createSecret, {
    gcTime: 0,
    onSuccess() {
      onCreated();
      onClose();
    },
  });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        create.mutate({
          name,
          value,
          scope: { scope: { case: "organizationId", value: organizationId } },
          mount:
            kind === "filePath"
              ? { case: "filePath", value: path }
              : kind === "header"
                ? { case: "apiOnly", value: true }
                : { case: "environmentVariable", value: true },
          ...(isPutIn && { credentialProxy: { targetHosts: hosts.split(/[\s,]+/).filter(Boolean), header } }),
        });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="Name"
        description="Letters, digits and underscores; of a variable it is its name."
        required
        data-autofocus
        minLength={3}
        maxLength={127}
        pattern="[0-9a-zA-Z_]{3,}"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <NativeSelect
        label="Is there as"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value)}
        data={[
          { value: "environmentVariable", label: "A variable of the environment" },
          { value: "filePath", label: "A file" },
          { value: "header", label: "A header of requests, never seen by work" },
          { value: "headerAndVariable", label: "A header of requests, with a placeholder as a variable" },
        ]}
      />
      {kind === "filePath" && (
        <TextInput
          label="Path of the file"
          placeholder="/home/dev/.netrc"
          required
          maxLength={1024}
          value={path}
          onChange={(event) => setPath(event.currentTarget.value)}
        />
      )}
      {isPutIn && (
        <>
          <p className="dim">
            Work never gets the value: the proxy of its runner puts it into requests over HTTPS to these
            hosts, which the policy “Hosts that isolated work may reach” has to allow. A runner that isolates
            nothing leaves it out, with a warning.
          </p>
          <Textarea
            label="Hosts, one a line"
            description="Names, with a port where that is not 443; no addresses."
            placeholder="api.example.org"
            required
            autosize
            minRows={1}
            maxRows={6}
            spellCheck={false}
            classNames={{ input: "mono" }}
            value={hosts}
            onChange={(event) => setHosts(event.currentTarget.value)}
          />
          <TextInput
            label="Header"
            description="The value is all of it, such as Bearer and a token."
            required
            maxLength={128}
            classNames={{ input: "mono" }}
            value={header}
            onChange={(event) => setHeader(event.currentTarget.value)}
          />
        </>
      )}
      <ValueInput value={value} onChange={setValue} />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create secret
        </Button>
      </div>
    </form>
  );
}

function ReplaceValue({
  secretId,
  onReplaced,
  onClose,
}: {
  readonly secretId: string;
  readonly onReplaced: () => void;
  readonly onClose: () => void;
}) {
  const [value, setValue] = useState("");
  const replace = useMutation(SecretService.method.updateSecretValue, {
    gcTime: 0,
    onSuccess() {
      onReplaced();
      onClose();
    },
  });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        replace.mutate({ secretId, value });
      }}
    >
      <Problem error={replace.error} />
      <p>Environments that start from now on get the new value.</p>
      <ValueInput value={value} onChange={setValue} />
      <div className="row">
        <Button type="submit" loading={replace.isPending}>
          Replace value
        </Button>
      </div>
    </form>
  );
}

function ValueInput({
  value,
  onChange,
}: {
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  return (
    <TextInput
      type="password"
      label="Value"
      required
      autoComplete="new-password"
      maxLength={10_240}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
