import { NativeSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

/** The zone of the person's own clock. */
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The names of the time zones that browsers know. */
export const ZONES: readonly string[] = [
  ...new Set(["UTC", OWN_ZONE, ...Intl.supportedValuesOf("timeZone")]),
];

/** Instants that are shown. */
const SHOWN = 5;

interface InstantsProps {
  readonly cron: string;
  /** The zone in which the expression is read. */
  readonly zone: string;
}

/** Shows when an expression comes due next, in a zone that the person chooses. */
export function Instants({ cron, zone }: InstantsProps) {
  const [shownIn, setShownIn] = useState(OWN_ZONE);
  const [typed] = useDebouncedValue(cron, 200);
  const { data } = useQuery({
    queryKey: ["instants", typed, zone],
    queryFn: () => nextInstants(typed, zone),
    refetchInterval: 30_000,
    retry: false,
  });
  if (!data) return null;
  if ("problem" in data) return <p className="breach">{data.problem}</p>;
  return (
    <div className="instants">
      <div className="row small dim">
        <span>Next, in the time of</span>
        <NativeSelect
          size="xs"
          aria-label="Zone of the times that are shown"
          value={shownIn}
          onChange={(event) => setShownIn(event.currentTarget.value)}
          data={[...ZONES]}
        />
      </div>
      <ol className="small figures" aria-label="Next instants">
        {data.instants.map((instant) => (
          <li key={instant.toISOString()}>
            <time dateTime={instant.toISOString()}>
              {instant.toLocaleString(undefined, {
                timeZone: shownIn,
                dateStyle: "full",
                timeStyle: "short",
              })}
            </time>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Computes what comes due next, by the library that the server has, which is loaded for it. */
async function nextInstants(
  cron: string,
  timezone: string,
): Promise<{ readonly instants: readonly Date[] } | { readonly problem: string }> {
  const { Cron } = await import("croner");
  try {
    const instants = new Cron(cron, { timezone, paused: true, mode: "5-part" }).nextRuns(SHOWN);
    return instants.length === 0 ? { problem: "It never comes due." } : { instants };
  } catch (error) {
    const { message } = error as Error;
    return { problem: `The expression cannot be read: ${message.replace(/^CronPattern: /, "")}` };
  }
}
