import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type StreamActionLogsResponse, WorkflowService } from "#gen/service/v1/workflow_service_pb.js";
import { transport } from "../../../api/server.tsx";
import { type StreamState, useStream } from "../../../api/stream.ts";
import { createLogText, type LogText } from "./log-text.ts";

const workflows = createClient(WorkflowService, transport);

/** Identifies a log. */
interface LogPlace {
  readonly actionId: string;
  readonly stepIndex: number;
  readonly attempt: number;
  readonly isOver: boolean;
}

/**
 * Follows the log of a step by a stream, which resumes after the last byte that the page has, or by polling while all
 * stream slots are taken. The log is not in the query cache, since it may be large.
 */
export function useLog({ actionId, stepIndex, attempt, isOver }: LogPlace): {
  readonly log: LogText;
  readonly version: number;
  readonly state: StreamState;
  readonly error: unknown;
} {
  const [log] = useState(createLogText);
  const [version, setVersion] = useState(0);
  const [gathered] = useState(() => createGathering(() => setVersion(log.version)));
  useEffect(() => () => gathered.end(), [gathered]);
  const take = ({ offset, data, attempt }: StreamActionLogsResponse) => {
    log.add({ offset: Number(offset), data, attempt });
    gathered.tell();
  };
  const request = (follow: boolean) => ({
    workflowExecutionActionId: actionId,
    stepIndex,
    afterOffset: BigInt(log.offset),
    follow,
  });
  // Changes at the end: the end may be known before the stream's last pieces arrive.
  const pollKey = ["log", actionId, stepIndex, attempt, isOver];
  const reading = useQuery({
    queryKey: pollKey,
    gcTime: 0,
    refetchInterval: false,
    async queryFn({ signal }) {
      for await (const piece of workflows.streamActionLogs(request(false), { signal })) take(piece);
      return log.offset;
    },
  });
  const state = useStream<StreamActionLogsResponse>({
    // A finished log is read once, which needs no stream slot.
    key: isOver ? undefined : `${actionId} ${stepIndex} ${attempt}`,
    slot: "page",
    pollKey,
    open: (signal, onHeader) => workflows.streamActionLogs(request(true), { signal, onHeader }),
    onMessage: take,
    isFinal: () => true,
  });
  return { log, version, state: isOver ? "ended" : state, error: reading.error };
}

/** Combines many changes into one notification per animation frame. */
function createGathering(tell: () => void) {
  let frame: number | undefined;
  return {
    tell() {
      frame ??= requestAnimationFrame(() => {
        frame = undefined;
        tell();
      });
    },
    end() {
      if (frame !== undefined) cancelAnimationFrame(frame);
      frame = undefined;
    },
  };
}
