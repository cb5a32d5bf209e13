import type { GetServerHealthResponse_Check as Check } from "#gen/service/v1/organization_service_pb.js";
import type { useReadiness } from "../../../api/readiness.ts";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";
import { State } from "../../../parts/State.tsx";

/** Labels of the readiness checks, and what to do about each, as in docs/operations.md. */
const PARTS: Readonly<Record<string, readonly [label: string, advice: string]>> = {
  draining: ["Accepts calls", "Nothing, if it is meant to stop: send callers to another server."],
  database: [
    "Database takes changes",
    "Do what the sentence says. Reads may go on; the server is ready by itself within about a second.",
  ],
  disk: [
    "Disk of the data folder",
    "Free some of it, or make it larger. Changes go on until it is full. Backups next to the database and retention are what to look at first.",
  ],
  keys: [
    "Key file",
    "Put back the file that it was. The server goes on with the keys that it holds, and would not start again.",
  ],
  "audit export": [
    "Export of the audit trail",
    "Look at the target, and at the log, which says why it fails. The rows wait in the data until it confirms them.",
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
            well ? <State tone="done" word="Well" /> : <State tone="failed" word="Not well" />,
        },
        {
          head: "What to do",
          cell: ({ name, well, reason }) =>
            well ? (
              <span className="dim">nothing</span>
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
            <Empty title="The server warns of nothing." />
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
