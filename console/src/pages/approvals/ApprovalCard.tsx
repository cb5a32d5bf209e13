import {
  type Approval,
  type Approval_Asker,
  ApprovalKind,
  ApprovalState,
} from "#gen/service/v1/approval_pb.js";
import { Who } from "../../api/person.tsx";
import { State } from "../../parts/State.tsx";
import { Ago } from "../../parts/Time.tsx";
import { ApprovalOf, ChangesOf } from "./ApprovalLink.tsx";
import { approvalState, approvalTitle, KINDS } from "./approval-state.ts";
import { Content } from "./Content.tsx";
import { Decision } from "./Decision.tsx";

/** Shows a whole approval: the request, the asker, why a person has to decide, and the decision. */
export function ApprovalCard({
  approval,
  isInRun = false,
}: {
  readonly approval: Approval;
  readonly isInRun?: boolean;
}) {
  const [tone, word] = approvalState(approval.state);
  const { asker, digest, policyFieldPath, expiresAt, createdAt, creator, decisions, reason, carriedOutAt } =
    approval;
  const title = approvalTitle(approval);
  return (
    <section className={`card card-${tone}`} aria-label={`Approval: ${title}`}>
      <div className="row card-head">
        <State tone={tone} word={word} />
        <h2>{title}</h2>
        <span className="dim">{KINDS[approval.kind]}</span>
      </div>
      <Content approval={approval} />
      <dl className="facts small">
        {!isInRun && (
          <>
            <dt>Requested by</dt>
            <dd>
              {asker?.agentExecutionId ? (
                <>
                  the agent of <ApprovalOf approval={approval} /> for <Who subject={creator} />
                </>
              ) : (
                <>
                  <Who subject={creator} />
                  {(asker?.environmentId || asker?.workflowExecutionId) && (
                    <>
                      {" "}
                      of <ApprovalOf approval={approval} />
                    </>
                  )}
                </>
              )}
              , <Ago at={createdAt} />
            </dd>
            {approval.kind === ApprovalKind.PUSH && <ChangesOf approval={approval} />}
          </>
        )}
        {approval.state === ApprovalState.PENDING && expiresAt && (
          <>
            <dt>Expires</dt>
            <dd>
              <Ago at={expiresAt} />, then counts as denied
            </dd>
          </>
        )}
        {policyFieldPath && (
          <>
            <dt>Required by</dt>
            <dd>
              <code>{policyFieldPath}</code>
            </dd>
          </>
        )}
        <dt>Digest</dt>
        <dd>
          <code>{digest}</code>
        </dd>
        {decisions.map(({ by, at, approved, reason }) => (
          <Decided key={`${by?.id}${at?.seconds}`} approved={approved}>
            <Who subject={by} />, <Ago at={at} />
            {reason && `: ${reason}`}
          </Decided>
        ))}
        {reason && approval.state !== ApprovalState.PENDING && decisions.length === 0 && (
          <>
            <dt>Reason</dt>
            <dd>{reason}</dd>
          </>
        )}
        {approval.kind === ApprovalKind.PUSH && approval.state === ApprovalState.APPROVED && (
          <>
            <dt>Pushed</dt>
            <dd>{carriedOutAt ? <Ago at={carriedOutAt} /> : notPushedYet(asker)}</dd>
          </>
        )}
      </dl>
      <Decision approval={approval} />
    </section>
  );
}

/** Says what an approved push waits for. */
const notPushedYet = (asker: Approval_Asker | undefined): string =>
  asker?.workflowExecutionId
    ? "not yet: the workflow step pushes it"
    : "not yet: the requester pushes it with “Push now” in the run's changes, or by repeating the call";

function Decided({ approved, children }: { readonly approved: boolean; readonly children: React.ReactNode }) {
  return (
    <>
      <dt>{approved ? "Approved by" : "Denied by"}</dt>
      <dd>{children}</dd>
    </>
  );
}
