import type { GetServerHealthResponse_Check as Check } from "#gen/service/v1/organization_service_pb.js";
import type { useReadiness } from "../../../api/readiness.ts";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { State } from "../../../parts/State.tsx";

/** Labels of the readiness checks, and what to do about each, as in docs/operations.md. */
const PARTS: Readonly<Record<string, readonly [label: string, advice: string]>> = {
  draining: ["Accepts calls", "None if it is meant to stop. Send callers to another server."],
  database: [
    "Database takes changes",
    "Follow the message. Reads may still work. The server becomes ready about a second after the problem is solved.",
  ],
  disk: [
    "Disk of the data folder",
    "Free some space or enlarge the disk. Changes still work until it is full. Check backups next to the database and retention first.",
  ],
  keys: [
    "Key file",
    "Restore the original file. The server keeps using the keys in memory, but could not start again.",
  ],
  "audit export": [
    "Export of the audit trail",
    "Check the target and the log, which says why the export fails. Rows stay in the database until the target confirms them.",
  ],
};

const labelOf = (name: string): string => PARTS[name]?.[0] ?? name;

function Advice({ of }: { readonly of: string }) {
  const [, advice = ""] = PARTS[of] ?? [];
  return advice === "" ? null : <span className="dim block">{advice}</span>;
}

/** Shows the readiness checks with their states and, for failing ones, what to do. */
export function Checks({ checks }: { readonly checks: readonly Pick<Check, "name" | "well" | "reason">[] }) {
  return (
    <DataTable
      label="Parts of readiness"
      rows={checks}
      keyOf={({ name }) => name}
      columns={[
        { head: "Part", cell: ({ name }) => labelOf(name) },
        {
          head: "State",
          cell: ({ well }) =>
            well ? <State tone="done" word="OK" /> : <State tone="failed" word="Failing" />,
        },
        {
          head: "What to do",
          cell: ({ name, well, reason }) =>
            well ? (
              <span className="dim">Nothing</span>
            ) : (
              <>
                {sentence(reason)} <Advice of={name} />
              </>
            ),
        },
      ]}
    />
  );
}

/** Shows the server's warnings, which do not affect anybody yet. */
export function Warnings({ readiness }: { readonly readiness: ReturnType<typeof useReadiness> }) {
  return (
    <Section title="Warnings" count={readiness.data?.warnings?.length}>
      <Loaded reading={readiness} lines={1}>
        {({ warnings = [] }) =>
          warnings.length === 0 ? (
            <Empty title="There are no warnings." />
          ) : (
            <DataTable
              label="Warnings"
              rows={warnings}
              keyOf={({ check, reason }) => `${check} ${reason}`}
              columns={[
                { head: "Part", cell: ({ check }) => <State tone="asks" word={labelOf(check)} /> },
                {
                  head: "What to do",
                  cell: ({ check, reason }) => (
                    <>
                      {sentence(reason)} <Advice of={check} />
                    </>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
