import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { usePerson } from "../../../api/person.tsx";
import { ServiceAccountPicker } from "../../../parts/pickers/ServiceAccountPicker.tsx";
import { useAgents } from "../../../parts/pickers/use-agents.ts";
import type { Draft } from "./draft.ts";

/** Edits the subject that executions run as, and the agent for their agent steps. */
export function AgentFields({
  draft,
  onChange,
}: {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}) {
  const { user } = usePerson();
  const agents = useAgents();
  const { executor, agentId } = draft;
  const isAccount = executor?.principal === Principal.SERVICE_ACCOUNT;
  const account = useQuery(
    ServiceAccountService.method.listServiceAccounts,
    { filter: { serviceAccountIds: [executor?.id ?? ""], includeSuspended: true } },
    { enabled: isAccount, retry: false },
  );
  const accountName = account.data?.serviceAccounts[0]?.name ?? executor?.id;
  const runAs = (id: string, principal: Principal) =>
    onChange({ ...draft, executor: create(SubjectSchema, { id, principal }) });
  const isUnknownAgent = agentId !== "" && !agents.data?.some(({ id }) => id === agentId);
  return (
    <>
      <div className="field-row">
        <NativeSelect
          label="Executions run as"
          value={executor?.id ?? user?.id ?? ""}
          onChange={({ currentTarget: { value } }) => {
            if (value === user?.id) runAs(value, Principal.USER);
          }}
          data={[
            { value: user?.id ?? "", label: `${user?.name ?? "…"} (you)` },
            ...(executor && executor.id !== user?.id
              ? [
                  {
                    value: executor.id,
                    label: isAccount ? `${accountName}, a service account` : "Someone else (unchanged)",
                  },
                ]
              : []),
          ]}
        />
        <NativeSelect
          label="Agent for agent steps"
          value={agentId}
          onChange={(event) => onChange({ ...draft, agentId: event.currentTarget.value })}
          data={[
            { value: "", label: "Default" },
            ...(isUnknownAgent ? [{ value: agentId, label: agentId }] : []),
            ...(agents.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
      </div>
      <ServiceAccountPicker
        label="Service account to run as"
        verb="Run as"
        onChoose={({ id }) => runAs(id, Principal.SERVICE_ACCOUNT)}
      />
    </>
  );
}
