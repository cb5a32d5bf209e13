import { useQuery } from "@tanstack/react-query";
import { DataTable } from "../../../parts/DataTable.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Empty, Section } from "../../../parts/Page.tsx";

/** Lists the programs that `agent add --preset` knows by name, like `agent presets` does. */
export function Presets() {
  const presets = useQuery({
    queryKey: ["presets"],
    queryFn: async () => (await import("../../../../../src/commands/agent-presets.ts")).AGENT_PRESETS,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
    retry: false,
  });
  return (
    <Section title="Presets" count={presets.data?.length}>
      {/* Browsers remember a failed script import until the page is reloaded. */}
      <Loaded reading={{ ...presets, refetch: () => window.location.reload() }} lines={2}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="There are no presets.">
              <p>
                Register one with <code>--command</code> and what it speaks with <code>--form</code>.
              </p>
            </Empty>
          ) : (
            <DataTable
              label="Presets"
              rows={rows}
              keyOf={({ name }) => name}
              columns={[
                { head: "Preset", cell: ({ name }) => <strong>{name}</strong> },
                {
                  head: "Requirements",
                  cell: ({ install, secret, opensWithoutKey }) => (
                    <>
                      <code>{install}</code>
                      <span className="block dim small">
                        on the runner’s machine, and the key of its model in the secret <code>{secret}</code>
                        {!opensWithoutKey && ", without which it does not start"}
                      </span>
                    </>
                  ),
                },
                { head: "Program", cell: ({ command }) => <code>{command}</code>, isExtra: true },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
