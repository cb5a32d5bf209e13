import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { AgentService } from "#gen/service/v1/agent_service_pb.js";
import { Principal, SubjectSchema } from "#gen/service/v1/identity_pb.js";
import { ServiceAccountService } from "#gen/service/v1/service_account_service_pb.js";
import { usePerson } from "../../../api/person.tsx";
import type { Draft } from "./draft.ts";

/** Whom executions run as, and which agent carries out steps for agents. */
export function AgentFields({
  draft,
  onChange,
}: {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
}) {
  const { user } = usePerson();
  const agents = useQuery(AgentService.method.listAgents, { pagination: { pageSize: 100 } });
  const accounts = useQuery(ServiceAccountService.method.listServiceAccounts, {
    pagination: { pageSize: 100 },
  });
  const { executor, agentId } = draft;
  const known = accounts.data?.serviceAccounts ?? [];
  const isOther =
    executor !== undefined && executor.id !== user?.id && !known.some(({ id }) => id === executor.id);
  const isUnknownAgent = agentId !== "" && !agents.data?.agents.some(({ id }) => id === agentId);
  return (
    <div className="field-row">
      <NativeSelect
        label="Executions run as"
        value={executor?.id ?? user?.id ?? ""}
        onChange={({ currentTarget: { value } }) => {
          const principal = value === user?.id ? Principal.USER : Principal.SERVICE_ACCOUNT;
          if (value !== executor?.id) {
            onChange({ ...draft, executor: create(SubjectSchema, { id: value, principal }) });
          }
        }}
        data={[
          { value: user?.id ?? "", label: `${user?.name ?? "…"} (you)` },
          ...(isOther ? [{ value: executor.id, label: "Somebody else, as it is now" }] : []),
          ...known.map(({ id, name }) => ({ value: id, label: `${name}, a service account` })),
        ]}
      />
      <NativeSelect
        label="Agent of the steps for agents"
        value={agentId}
        onChange={(event) => onChange({ ...draft, agentId: event.currentTarget.value })}
        data={[
          { value: "", label: "The default one" },
          ...(isUnknownAgent ? [{ value: agentId, label: agentId }] : []),
          ...(agents.data?.agents ?? []).map(({ id, name }) => ({ value: id, label: name })),
        ]}
      />
    </div>
  );
}
