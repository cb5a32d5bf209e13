import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import {
  type EnvironmentConnection,
  EnvironmentConnection_Refusal as Refusal,
} from "#gen/service/v1/environment_connection_pb.js";
import { EnvironmentService } from "#gen/service/v1/environment_service_pb.js";
import { RunnerIsolation } from "#gen/service/v1/runner_pb.js";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../../api/pages.ts";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { State } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";
import { ISOLATIONS } from "../../runners/runner-state.ts";

const REFUSALS: Readonly<Record<Refusal, string>> = {
  [Refusal.UNSPECIFIED]: "",
  [Refusal.NOT_ALLOWED]: "no part of the policy allows the host",
  [Refusal.ADDRESS_NOT_PUBLIC]: "an address of the host is not public",
  [Refusal.NO_ADDRESS]: "the host has no address",
  [Refusal.BEGUN_BY_FORK]: "started by a fork: only its own repositories are allowed",
};

/** Shows the isolation of a run, and which hosts its commands reached or were refused. */
export function Network({ environmentId }: { readonly environmentId: string }) {
  const connections = useInfiniteQuery(
    EnvironmentService.method.listEnvironmentConnections,
    { ...FIRST_PAGE, environmentId },
    BY_PAGE,
  );
  return (
    <>
      <Isolation environmentId={environmentId} />
      <Section title="Connections">
        <Loaded reading={connections}>
          {({ pages }) => {
            const rows = pages.flatMap((page) => page.connections);
            if (rows.length === 0) {
              return (
                <Empty title="No connections yet.">
                  <p>If the run is sandboxed, the hosts that its commands try to reach appear here.</p>
                </Empty>
              );
            }
            return (
              <>
                {pages[0]?.leftOut && (
                  <p className="dim">Some connections are not shown: there were more than are kept.</p>
                )}
                <DataTable
                  label="Connections"
                  rows={rows}
                  keyOf={({ id }) => id}
                  {...moreOf(connections)}
                  columns={[
                    {
                      head: "Host",
                      cell: ({ host, port }) => (
                        <code>
                          {host}:{port}
                        </code>
                      ),
                    },
                    { head: "Result", cell: (each) => <Result connection={each} /> },
                    { head: "Allowed by", cell: ({ rule }) => rule && <code>{rule}</code>, isExtra: true },
                    {
                      head: "Sent",
                      cell: ({ sentBytes }) => sentBytes.toLocaleString(),
                      isNumeric: true,
                      isExtra: true,
                    },
                    {
                      head: "Received",
                      cell: ({ receivedBytes }) => receivedBytes.toLocaleString(),
                      isNumeric: true,
                      isExtra: true,
                    },
                    { head: "When", cell: ({ endedAt }) => <Ago at={endedAt} /> },
                  ]}
                />
              </>
            );
          }}
        </Loaded>
      </Section>
    </>
  );
}

function Result({ connection: { refusal } }: { readonly connection: EnvironmentConnection }) {
  if (refusal === Refusal.UNSPECIFIED) return <State tone="done" word="Allowed" />;
  return (
    <>
      <State tone="failed" word="Refused" /> <span className="dim small">{REFUSALS[refusal]}</span>
    </>
  );
}

function Isolation({ environmentId }: { readonly environmentId: string }) {
  const environment = useQuery(EnvironmentService.method.getEnvironment, { environmentId });
  const runnerId = environment.data?.environment?.metadata?.runnerId ?? "";
  const runner = useQuery(RunnerService.method.getRunner, { runnerId }, { enabled: runnerId !== "" });
  const isolation = runner.data?.runner?.status?.isolation ?? RunnerIsolation.UNSPECIFIED;
  return (
    <Section title="Isolation">
      <Loaded reading={environment} lines={1}>
        {() => (
          <dl className="facts">
            <dt>Runner</dt>
            <dd>{runnerId === "" ? "none yet" : (runner.data?.runner?.name ?? "…")}</dd>
            <dt>Isolated by</dt>
            <dd>
              {ISOLATIONS[isolation]}
              {isolation === RunnerIsolation.NONE && (
                <span className="dim">: its commands may do on the machine what the runner’s user may</span>
              )}
            </dd>
          </dl>
        )}
      </Loaded>
    </Section>
  );
}
