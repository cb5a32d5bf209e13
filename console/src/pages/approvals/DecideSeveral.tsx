import { createClient } from "@connectrpc/connect";
import { Button, TextInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { type Approval, ApprovalState } from "#gen/service/v1/approval_pb.js";
import { ApprovalService, DecideApprovalRequest_Decision } from "#gen/service/v1/approval_service_pb.js";
import { queries, transport } from "../../api/server.tsx";
import { keepTyped, useKeptText } from "../../api/typed.ts";
import { Dialog } from "../../parts/Dialog.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";
import { approvalState, approvalTitle, KINDS } from "./approval-state.ts";
import { Content } from "./Content.tsx";

/** Name under which the tab keeps the reason until it is sent. */
const REASON_NAME = "reason of several";

const approvalClient = createClient(ApprovalService, transport);

/** The result of the decision on one approval. */
type Result =
  | { readonly case: "sending" }
  | { readonly case: "decided"; readonly state: ApprovalState }
  | { readonly case: "failed"; readonly error: unknown };

/**
 * Decides several approvals, one call after the other, each with the digest of what is shown here. Each shows its
 * result; a failure does not stop the others. Closing cancels those that have not been sent.
 */
export function DecideSeveral({
  approvals,
  onClose,
}: {
  readonly approvals: readonly Approval[];
  readonly onClose: () => void;
}) {
  const [reason, setReason] = useKeptText(REASON_NAME);
  const [isApproved, setIsApproved] = useState<boolean>();
  const [isBusy, setIsBusy] = useState(false);
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map());
  const isClosed = useRef(false);
  useEffect(() => {
    isClosed.current = false;
    return () => {
      isClosed.current = true;
    };
  }, []);
  const count = (kind: Result["case"]) => [...results.values()].filter((each) => each.case === kind).length;
  const tell = (id: string, result: Result) => setResults((before) => new Map(before).set(id, result));
  const send = async (decision: boolean) => {
    setIsApproved(decision);
    setIsBusy(true);
    for (const { id, digest } of approvals) {
      if (isClosed.current) break;
      if (results.get(id)?.case === "decided") continue;
      tell(id, { case: "sending" });
      try {
        const { approval } = await approvalClient.decideApproval({
          approvalId: id,
          digest,
          decision: decision ? DecideApprovalRequest_Decision.APPROVE : DecideApprovalRequest_Decision.DENY,
          reason,
        });
        tell(id, { case: "decided", state: approval?.state ?? ApprovalState.UNSPECIFIED });
      } catch (error) {
        tell(id, { case: "failed", error });
      }
    }
    setIsBusy(false);
    keepTyped(REASON_NAME, "");
    void queries.invalidateQueries();
  };
  const number = approvals.length.toLocaleString();
  return (
    <Dialog title={`Decide ${number} approvals`} size={720} onClose={onClose}>
      <div className="stack">
        <ul className="decided-list">
          {approvals.map((approval) => (
            <One key={approval.id} approval={approval} result={results.get(approval.id)} />
          ))}
        </ul>
        <p className="dim" role="status">
          {isApproved !== undefined &&
            `${count("decided").toLocaleString()} of ${number} decided, ${count("failed").toLocaleString()} failed.`}
        </p>
        {isApproved === undefined ? (
          <>
            <TextInput
              label="Reason"
              description="Optional. Shown to everyone who asked, and recorded in the audit log."
              value={reason}
              maxLength={2048}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
            <div className="row">
              <Button onClick={() => void send(true)}>Approve {number}</Button>
              <Button variant="default" onClick={() => void send(false)}>
                Deny {number}
              </Button>
            </div>
          </>
        ) : (
          <div className="row">
            <Button loading={isBusy} onClick={onClose}>
              Done
            </Button>
            {!isBusy && count("failed") > 0 && (
              <Button variant="default" onClick={() => void send(isApproved)}>
                {isApproved ? "Approve" : "Deny"} again what failed
              </Button>
            )}
          </div>
        )}
      </div>
    </Dialog>
  );
}

function One({ approval, result }: { readonly approval: Approval; readonly result: Result | undefined }) {
  const title = approvalTitle(approval);
  return (
    <li className="card" aria-label={title}>
      <div className="row card-head">
        <h3>{title}</h3>
        <span className="dim">{KINDS[approval.kind]}</span>
      </div>
      <Content approval={approval} />
      <dl className="facts small">
        <dt>Digest</dt>
        <dd>
          <code>{approval.digest}</code>
        </dd>
      </dl>
      {result?.case === "sending" && <State tone="running" word="Sending" />}
      {result?.case === "decided" && <Decided state={result.state} />}
      {result?.case === "failed" && <Problem error={result.error} />}
    </li>
  );
}

function Decided({ state }: { readonly state: ApprovalState }) {
  const [tone, word] = approvalState(state);
  if (state === ApprovalState.PENDING)
    return <State tone="waiting" word="Decided; others must approve, too" />;
  return <State tone={tone} word={word} />;
}
