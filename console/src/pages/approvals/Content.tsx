import { fromJsonString } from "@bufbuild/protobuf";
import type { ReactNode } from "react";
import {
  type Approval,
  ApprovalKind,
  type ApprovalPush,
  ApprovalPushSchema,
  ApprovalQuestionSchema,
  ApprovalStepSchema,
  type ApprovalToolCall,
  ApprovalToolCallSchema,
} from "#gen/service/v1/approval_pb.js";
import { Markdown } from "../../parts/Markdown.tsx";
import { TOOLS } from "./approval-state.ts";

const OPTIONS = { ignoreUnknownFields: true };

/** Shows exactly what is requested, in readable form; below it, the raw text that the digest covers. */
export function Content({ approval }: { readonly approval: Approval }) {
  return (
    <div className="stack">
      {readable(approval)}
      <details>
        <summary className="dim small">Content of the digest</summary>
        <pre className="code">{approval.requestJson}</pre>
      </details>
    </div>
  );
}

function readable({ kind, requestJson }: Approval): ReactNode {
  try {
    // Parsed here and not in the parts below, where nothing catches a parse error.
    if (kind === ApprovalKind.TOOL_CALL) {
      return <ToolCall call={fromJsonString(ApprovalToolCallSchema, requestJson, OPTIONS)} />;
    }
    if (kind === ApprovalKind.QUESTION) {
      return <Markdown text={fromJsonString(ApprovalQuestionSchema, requestJson, OPTIONS).message} />;
    }
    if (kind === ApprovalKind.STEP) {
      const { message, actionName, workflowActionId } = fromJsonString(
        ApprovalStepSchema,
        requestJson,
        OPTIONS,
      );
      return (
        <>
          {/* Without an action, the request is about a pull request from a fork, whose title anybody may have
             written. */}
          {workflowActionId === "" ? <p className="plain">{message}</p> : <Markdown text={message} />}
          {actionName && <p className="dim">For the action {actionName}.</p>}
        </>
      );
    }
    if (kind === ApprovalKind.PUSH) {
      return <Push push={fromJsonString(ApprovalPushSchema, requestJson, OPTIONS)} />;
    }
  } catch {
    // A later release may use a format of its own: then only the text below is shown.
  }
  return <pre className="code">{requestJson}</pre>;
}

function ToolCall({ call: { kind, tool, input, locations } }: { readonly call: ApprovalToolCall }) {
  return (
    <>
      <dl className="facts">
        <dt>Effect</dt>
        <dd>{TOOLS[kind]}</dd>
        {tool && (
          <>
            <dt>Tool</dt>
            <dd>
              <code>{tool}</code>
            </dd>
          </>
        )}
        {locations.length > 0 && (
          <>
            <dt>Where</dt>
            <dd>
              {locations.map((location, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: an agent may name a place twice
                <code key={at} className="block">
                  {location}
                </code>
              ))}
            </dd>
          </>
        )}
      </dl>
      {input && <pre className="code">{pretty(input)}</pre>}
    </>
  );
}

function Push({ push }: { readonly push: ApprovalPush }) {
  const { remote, branch, commit, force, pullRequest } = push;
  return (
    <>
      <dl className="facts">
        <dt>To</dt>
        <dd>
          <code>{remote}</code>, branch <code>{branch}</code>
          {force && <strong> (force push: the branch loses commits)</strong>}
        </dd>
        <dt>Commit</dt>
        <dd>
          <code>{commit}</code>
        </dd>
        {pullRequest && (
          <>
            <dt>Opens</dt>
            <dd>
              a {pullRequest.draft ? "draft " : ""}pull request into <code>{pullRequest.base}</code>:{" "}
              {pullRequest.title}
            </dd>
          </>
        )}
      </dl>
      {pullRequest?.body && <Markdown text={pullRequest.body} />}
    </>
  );
}

/** Returns JSON with line breaks, and other text unchanged. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
