import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { NativeSelect } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { failureOf } from "../../../api/failure.ts";

/** The browser's time zone. */
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The time zones that the browser knows. */
export const ZONES: readonly string[] = [
  ...new Set(["UTC", OWN_ZONE, ...Intl.supportedValuesOf("timeZone")]),
];

interface InstantsProps {
  readonly cron: string;
  /** The time zone of the expression. */
  readonly zone: string;
}

/** Shows the next instants of an expression, in a time zone that the person chooses. */
export function Instants({ cron, zone }: InstantsProps) {
  const [shownIn, setShownIn] = useState(OWN_ZONE);
  const [typed] = useDebouncedValue(cron, 200);
  const { data, error } = useQuery(
    WorkflowService.method.previewWorkflow,
    { schedules: [{ cronExpression: typed, timeZone: zone }] },
    { enabled: typed !== "", retry: false },
  );
  if (error) return <p className="breach">{failureOf(error).sentence}</p>;
  const instants = data?.schedules[0]?.instants.map(timestampDate);
  if (!instants) return null;
  return (
    <div className="instants">
      <div className="row small dim">
        <span>Next times in</span>
        <NativeSelect
          size="xs"
          aria-label="Show times in"
          value={shownIn}
          onChange={(event) => setShownIn(event.currentTarget.value)}
          data={[...ZONES]}
        />
      </div>
      <ol className="small figures" aria-label="Next instants">
        {instants.map((instant) => (
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
