import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea, TextInput } from "@mantine/core";
import {
  type Approval,
  ApprovalKind,
  type ApprovalOption,
  ApprovalOption_Kind,
  ApprovalState,
} from "#gen/service/v1/approval_pb.js";
import { ApprovalService, DecideApprovalRequest_Decision } from "#gen/service/v1/approval_service_pb.js";
import { rereadAll } from "../../api/server.tsx";
import { keepTyped, useKeptText } from "../../api/typed.ts";
import { Problem } from "../../parts/Problem.tsx";
import { State } from "../../parts/State.tsx";

const ALLOWING = new Set([ApprovalOption_Kind.ALLOW_ONCE, ApprovalOption_Kind.ALLOW_ALWAYS]);

/** Returns the options that the asker offers in addition to yes and no. */
const special = (options: readonly ApprovalOption[]) =>
  options.filter(
    ({ kind }) => kind === ApprovalOption_Kind.ALLOW_ALWAYS || kind === ApprovalOption_Kind.REJECT_ALWAYS,
  );

/** Lets a person decide an approval. The call contains the digest of what is shown, so nothing else is decided. */
export function Decision({ approval }: { readonly approval: Approval }) {
  const [reasonName, answerName] = [`reason ${approval.id}`, `answer ${approval.id}`];
  const [reason, setReason] = useKeptText(reasonName);
  const [answer, setAnswer] = useKeptText(answerName);
  const decide = useMutation(ApprovalService.method.decideApproval, {
    ...rereadAll,
    onSuccess() {
      setReason("");
      setAnswer("");
      // Also runs when the page was left in the meantime.
      keepTyped(reasonName, "");
      keepTyped(answerName, "");
      return rereadAll.onSuccess();
    },
  });
  if (approval.state !== ApprovalState.PENDING) return null;
  const isQuestion = approval.kind === ApprovalKind.QUESTION;
  const send = (isApproved: boolean, optionId = "") =>
    decide.mutate({
      approvalId: approval.id,
      digest: approval.digest,
      decision: isApproved ? DecideApprovalRequest_Decision.APPROVE : DecideApprovalRequest_Decision.DENY,
      optionId,
      reason,
      answerJson: isQuestion && isApproved ? answerJson(answer) : "",
    });
  return (
    <div className="stack">
      <Problem error={decide.error} />
      {isQuestion && (
        <Textarea
          label="Your answer"
          description="Text, or a JSON object if the question has a form."
          autosize
          minRows={2}
          value={answer}
          onChange={(event) => setAnswer(event.currentTarget.value)}
        />
      )}
      <TextInput
        label="Reason"
        description="Optional. Shown to the person or agent that asked, and recorded in the audit log."
        value={reason}
        maxLength={2048}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <div className="row">
        <Button
          onClick={() => send(true)}
          loading={decide.isPending}
          disabled={isQuestion && answer.trim() === ""}
        >
          {isQuestion ? "Answer" : "Approve"}
        </Button>
        <Button variant="default" onClick={() => send(false)} disabled={decide.isPending}>
          {isQuestion ? "Decline" : "Deny"}
        </Button>
        {special(approval.options).map(({ id, name, kind }) => (
          <Button
            key={id}
            variant="subtle"
            onClick={() => send(ALLOWING.has(kind), id)}
            disabled={decide.isPending}
          >
            {/* The asker chooses the name, and could call an option that allows it "Deny". */}
            {ALLOWING.has(kind) ? "Always allow" : "Always deny"}: {name || id}
          </Button>
        ))}
        <span role="status">{decide.isPending && <State tone="running" word="Sending your decision" />}</span>
      </div>
    </div>
  );
}

/** Returns an answer as the JSON object that questions expect: typed JSON unchanged, other text as its text field. */
function answerJson(answer: string): string {
  try {
    const value: unknown = JSON.parse(answer);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return answer;
  } catch {
    // Not JSON: use it as text.
  }
  return JSON.stringify({ answer });
}
