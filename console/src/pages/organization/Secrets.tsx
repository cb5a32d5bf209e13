import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
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
import { CreateSecret, ReplaceValue } from "./SecretForms.tsx";

/** Lists the organization's secrets by name. Their values can be written but not read. */
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
              <Empty title="The organization has no secrets yet.">
                <p>
                  Every environment of the organization gets a secret as a variable or a file, or the proxy
                  adds it to requests without the work seeing it. Its value is never shown again and is masked
                  in logs.
                </p>
              </Empty>
            );
          }
          return (
            <DataTable
              label="Secrets"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(secrets)}
              columns={[
                { head: "Name", cell: ({ name }) => <code>{name}</code> },
                { head: "Available as", cell: mountOf },
                { head: "Created by", cell: ({ creator }) => <Who subject={creator} />, isExtra: true },
                { head: "Value changed", cell: ({ updatedAt }) => <Ago at={updatedAt} />, isExtra: true },
                ...(isAdministrator
                  ? [
                      {
                        head: "Action",
                        cell: (secret: Secret) => (
                          <div className="row-actions">
                            <DialogButton label="Replace value" isMain={false}>
                              {(close) => <ReplaceValue secret={secret} onReplaced={read} onClose={close} />}
                            </DialogButton>
                            <ConfirmButton
                              label="Delete"
                              question={`Environments that start from now on do not get ${secret.name}. Running ones keep it.`}
                              onConfirm={() => remove.mutate({ secretId: secret.id })}
                              isBusy={remove.isPending && remove.variables.secretId === secret.id}
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
      return "only a name for the API";
  }
}
