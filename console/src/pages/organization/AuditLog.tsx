import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useInfiniteQuery, useQuery } from "@connectrpc/connect-query";
import { NativeSelect, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ResourceType } from "#gen/service/v1/event_pb.js";
import {
  type ListAuditLogsResponse_AuditLogEntry as Entry,
  EventService,
} from "#gen/service/v1/event_service_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { BY_PAGE, FIRST_PAGE, moreOf } from "../../api/pages.ts";
import { Who } from "../../api/person.tsx";
import { DataTable } from "../../parts/DataTable.tsx";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Loaded } from "../../parts/Loaded.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Ago, Exact } from "../../parts/Time.tsx";
import type { PartProps } from "./Organization.tsx";
import { wordsOf } from "./words.ts";

/** Milliseconds without a key press before the filter is applied. */
const TYPED_MS = 200;

const ACTORS: readonly (readonly [string, string])[] = [
  ["", "Anybody"],
  [String(Principal.USER), "People"],
  [String(Principal.SERVICE_ACCOUNT), "Service accounts"],
  [String(Principal.RUNNER), "Runners"],
  ["0", "The operator and the server"],
];

const TYPES = Object.entries(ResourceType)
  .filter(([name, value]) => typeof value === "number" && name !== "UNSPECIFIED")
  .map(([name, value]) => ({ value: String(value), label: wordsOf(name) }))
  .sort((one, other) => one.label.localeCompare(other.label));

/** The packages of operations, which the list leaves out of the names of actions. */
const PACKAGES = ["service.v1.", "runner.v1."];
const PACKAGE = /^(service|runner)\.v1\./;

/** Characters of an action, of which the contract allows 128 with its package. */
const MAX_ACTION = 128 - "service.v1.".length;

/** Returns the full names that an action may have, with or without the package typed. */
const actionsNamed = (name: string): string[] => {
  if (name === "") return [];
  return PACKAGE.test(name) ? [name] : [name, ...PACKAGES.map((each) => each + name)];
};

/** Shows who did what in the organization; the filters are in the address. */
export function AuditLog({ isAdministrator }: PartProps) {
  const { by = "", of = "", action = "", from = "", to = "" } = useSearch({ from: "/organization" });
  const navigate = useNavigate();
  const [wanted] = useDebouncedValue(action, TYPED_MS);
  const [since, until] = [dateOf(from), dateOf(to)];
  const entries = useInfiniteQuery(
    EventService.method.listAuditLogs,
    {
      ...FIRST_PAGE,
      filter: {
        actorPrincipals: by === "" ? [] : [Number(by)],
        subjectTypes: of === "" ? [] : [Number(of)],
        actions: actionsNamed(wanted),
        ...(since && { from: timestampFromDate(since) }),
        ...(until && { to: timestampFromDate(until) }),
      },
    },
    { ...BY_PAGE, enabled: isAdministrator },
  );
  const set = (name: string) => (event: { readonly currentTarget: { readonly value: string } }) => {
    const { value } = event.currentTarget;
    void navigate({
      to: "/organization",
      search: (before) => ({ ...before, [name]: value || undefined }),
      replace: true,
    });
  };
  if (!isAdministrator) {
    return (
      <Empty title="Only administrators can read the audit log.">
        <p>Ask one of them for what you need. The members are on the first tab.</p>
      </Empty>
    );
  }
  return (
    <Section title="Audit log">
      <ChainState />
      <div className="filters">
        <NativeSelect
          label="Actor"
          value={by}
          onChange={set("by")}
          data={ACTORS.map(([value, label]) => ({ value, label }))}
        />
        <NativeSelect
          label="Resource"
          value={of}
          onChange={set("of")}
          data={[{ value: "", label: "Anything" }, ...TYPES]}
        />
        <TextInput
          label="Action"
          placeholder="ProjectService/CreateProject"
          maxLength={MAX_ACTION}
          value={action}
          onChange={set("action")}
        />
        <TextInput label="From" type="datetime-local" value={from} onChange={set("from")} />
        <TextInput label="Before" type="datetime-local" value={to} onChange={set("to")} />
      </div>
      <Loaded reading={entries}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.entries);
          if (rows.length === 0) return <Empty title="No entries match. Remove a filter." />;
          return (
            <DataTable
              label="Audit log"
              isStacked
              rows={rows}
              keyOf={({ id }) => id}
              {...moreOf(entries)}
              columns={[
                { head: "When", cell: ({ createdAt }) => <Ago at={createdAt} /> },
                { head: "Actor", cell: (entry) => <Actor entry={entry} /> },
                {
                  head: "Action",
                  cell: ({ action, reason }) => (
                    <>
                      <code title={action}>{action.replace(PACKAGE, "")}</code>
                      {reason !== "" && <span className="dim"> “{reason}”</span>}
                    </>
                  ),
                },
                {
                  head: "Resource",
                  cell: ({ subjectType }) => wordsOf(ResourceType[subjectType]),
                  isExtra: true,
                },
                {
                  head: "Entry",
                  cell: (entry) => (
                    <DialogButton label={`Entry ${entry.sequence}`} size={720} isMain={false}>
                      {() => <EntryDetails entry={entry} />}
                    </DialogButton>
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}

/** Shows the length of the hash chain, and how to verify it, which needs the server's key. */
function ChainState() {
  const newest = useQuery(EventService.method.listAuditLogs, { pagination: { pageSize: 1 } });
  return (
    <section aria-label="Chain of hashes">
      <Loaded reading={newest} lines={1}>
        {({ entries: [entry] }) =>
          entry ? (
            <p className="bar">
              Each entry has a hash of itself and the previous entry. The newest is {String(entry.sequence)},{" "}
              <code>{hexOf(entry.hash)}</code>. Keep this hash elsewhere to prove later that no earlier entry
              was changed. On the server’s machine, <code>npx chartroom audit verify</code> checks all
              entries.
            </p>
          ) : (
            <Empty title="The chain has no entries.">
              <p>Changes are recorded here from now on, each entry with a hash of the previous one.</p>
            </Empty>
          )
        }
      </Loaded>
    </section>
  );
}

function Actor({ entry: { actorId, actorPrincipal } }: { readonly entry: Entry }) {
  if (actorPrincipal !== Principal.UNSPECIFIED)
    return <Who subject={{ $typeName: "service.v1.Subject", id: actorId, principal: actorPrincipal }} />;
  if (actorId === "") return <span className="dim">the server</span>;
  return <span>{actorId.replace(/^operator:?/, "operator ")}</span>;
}

function EntryDetails({ entry }: { readonly entry: Entry }) {
  return (
    <div className="stack">
      <dl className="facts">
        <dt>Time</dt>
        <dd>
          <Exact at={entry.createdAt} />
        </dd>
        <dt>Actor</dt>
        <dd>
          <Actor entry={entry} />
        </dd>
        <dt>Action</dt>
        <dd>
          <code>{entry.action}</code>
        </dd>
        <dt>Resource</dt>
        <dd>
          {wordsOf(ResourceType[entry.subjectType])} <code>{entry.subjectId}</code>
        </dd>
        {entry.reason !== "" && (
          <>
            <dt>Reason</dt>
            <dd>{entry.reason}</dd>
          </>
        )}
        <dt>Hash</dt>
        <dd>
          <code>{hexOf(entry.hash)}</code>
        </dd>
      </dl>
      {entry.changes.length === 0 ? (
        <p className="dim">No value changed.</p>
      ) : (
        <div className="table-frame">
          <table className="table changes-table" aria-label="Changes">
            <thead>
              <tr>
                <th scope="col">Value</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {entry.changes.map(({ path, before, after }) => (
                <tr key={path}>
                  <td>
                    <code>{path}</code>
                  </td>
                  <td>
                    <code>{before}</code>
                  </td>
                  <td>
                    <code>{after}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

const hexOf = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

function dateOf(text: string): Date | undefined {
  const date = new Date(text);
  return text === "" || Number.isNaN(date.getTime()) ? undefined : date;
}
