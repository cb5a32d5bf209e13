import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import {
  type GetServerHealthResponse,
  OrganizationService,
} from "#gen/service/v1/organization_service_pb.js";
import { useReadiness } from "../../../api/readiness.ts";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Details } from "../../../parts/Details.tsx";
import { Icon } from "../../../parts/Icon.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { State } from "../../../parts/State.tsx";
import { Ago } from "../../../parts/Time.tsx";
import type { PartProps } from "../Organization.tsx";
import { Checks, Warnings } from "./Checks.tsx";
import { Curves } from "./Curves.tsx";
import { amountOf, exportLags, type FigureRow, labelsOf, rowsOf, SERVER, WORK } from "./figures.ts";
import "../../../parts/work.css";

/** Polling interval in milliseconds while the page is visible. */
const AGAIN_MS = 5_000;

/** Shows the health of the server: its checks with advice, its warnings, and its main figures in words. */
export function ServerHealth({ organizationId, isAdministrator }: PartProps) {
  const health = useQuery(
    OrganizationService.method.getServerHealth,
    { organizationId },
    { refetchInterval: isAdministrator && AGAIN_MS, staleTime: 0 },
  );
  const readiness = useReadiness(AGAIN_MS);
  if (health.error && ConnectError.from(health.error).code === Code.PermissionDenied) {
    return (
      <Empty title="Only administrators can read the health of the server.">
        <p>
          Whether it is ready is on <Link to="/runners">Runners</Link>.
        </p>
      </Empty>
    );
  }
  // Without its database the server can handle no call, but /readyz still reports the problem.
  const problems = (health.error && readiness.data?.problems) || [];
  return (
    <>
      <Section
        title="Readiness"
        more={
          health.dataUpdatedAt > 0 && (
            <span className="dim small">
              Read <Ago at={timestampFromMs(health.dataUpdatedAt)} />, every {AGAIN_MS / 1000} s
            </span>
          )
        }
      >
        {problems.length > 0 && (
          <div className="stack">
            <ReadyLine isReady={false} />
            <Checks checks={problems.map(({ check, reason }) => ({ name: check, reason, well: false }))} />
          </div>
        )}
        <Loaded reading={health} lines={6}>
          {({ ready, version, startedAt, checks }) =>
            problems.length === 0 && (
              <div className="stack">
                <ReadyLine isReady={ready}>
                  release {version}, started <Ago at={startedAt} />
                </ReadyLine>
                <Checks checks={checks} />
              </div>
            )
          }
        </Loaded>
      </Section>
      <Warnings readiness={readiness} />
      {health.data && <Curves health={health.data} readAt={health.dataUpdatedAt} />}
      {health.data && <Figures health={health.data} />}
    </>
  );
}

function ReadyLine({ isReady, children }: { readonly isReady: boolean; readonly children?: ReactNode }) {
  return (
    <p className="row">
      <span role="status">
        {isReady ? <State tone="done" word="Ready" /> : <State tone="failed" word="Not ready" />}
      </span>
      <span className="dim">{children}</span>
    </p>
  );
}

function Figures({ health: { server, organization } }: { readonly health: GetServerHealthResponse }) {
  const lags = exportLags(organization);
  return (
    <>
      <Section title="Export of the audit trail">
        {lags.length === 0 ? (
          <Empty title="The audit trail is not exported.">
            <p>
              To export it as it grows, start the server with <code>--audit-file</code> or{" "}
              <code>--audit-otlp-endpoint</code>.
            </p>
          </Empty>
        ) : (
          <DataTable
            label="Targets of the export"
            rows={lags}
            keyOf={({ target }) => target}
            columns={[
              { head: "Target", cell: ({ target }) => target },
              { head: "Not confirmed", cell: ({ rows }) => rows, isNumeric: true },
              { head: "Oldest unconfirmed", cell: ({ oldest }) => oldest, isNumeric: true },
            ]}
          />
        )}
      </Section>
      <FigureTable title="Work of the organization" rows={rowsOf(organization, WORK)} />
      <FigureTable title="Server and database" rows={rowsOf(server, SERVER)} />
      <Details
        className="steps"
        summary={
          <>
            <Icon name="right" />
            All figures, by metric name
          </>
        }
      >
        <DataTable
          label="All figures"
          rows={[...organization, ...server]}
          keyOf={(figure) => `${figure.name} ${labelsOf(figure)}`}
          columns={[
            {
              head: "Figure",
              cell: (figure) => (
                <>
                  <code>{figure.name}</code> <span className="dim">{labelsOf(figure)}</span>
                </>
              ),
            },
            { head: "Now", cell: ({ value, unit }) => amountOf(value, unit), isNumeric: true },
            { head: "Description", cell: ({ description }) => description, isExtra: true },
          ]}
        />
      </Details>
    </>
  );
}

function FigureTable({ title, rows }: { readonly title: string; readonly rows: readonly FigureRow[] }) {
  return (
    <Section title={title}>
      {rows.length === 0 ? (
        <Empty title="The server could not read these figures. It will try again." />
      ) : (
        <DataTable
          label={title}
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            {
              head: "Figure",
              cell: ({ label, parts }) => (
                <>
                  {label}
                  {parts !== "" && <span className="dim small block">{parts}</span>}
                </>
              ),
            },
            { head: "Now", cell: ({ amount }) => amount, isNumeric: true },
            {
              head: "Description",
              cell: ({ description }) => <span className="dim">{description}</span>,
              isExtra: true,
            },
          ]}
        />
      )}
    </Section>
  );
}
