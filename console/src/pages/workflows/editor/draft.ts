import { clone, create, fromJson, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { SubjectSchema } from "#gen/service/v1/identity_pb.js";
import type { Workflow } from "#gen/service/v1/workflow_pb.js";
import {
  type CreateWorkflowRequest,
  CreateWorkflowRequestSchema,
  type UpdateWorkflowRequestSchema,
} from "#gen/service/v1/workflow_service_pb.js";

/** What the editor edits: an entire workflow, as the message that creates one. */
export type Draft = CreateWorkflowRequest;

/** Returns the initial content of a new workflow: one command over repositories, started manually. */
export const newDraft = (): Draft =>
  create(CreateWorkflowRequestSchema, {
    triggers: [
      {
        trigger: { case: "manual", value: {} },
        context: {
          context: {
            case: "repositories",
            value: { repositorySelector: { case: "repositoryUrls", value: {} } },
          },
        },
      },
    ],
    action: {
      limits: { maxParallel: 5, maxTotal: 100 },
      steps: [{ step: { case: "task", value: { command: "" } } }],
    },
  });

/** Returns the draft for an existing workflow. */
export const draftOf = ({ metadata, spec }: Workflow): Draft =>
  clone(
    CreateWorkflowRequestSchema,
    create(CreateWorkflowRequestSchema, {
      name: metadata?.name ?? "",
      description: metadata?.description ?? "",
      triggers: spec?.triggers ?? [],
      ...(spec?.action && { action: spec.action }),
      ...(spec?.report && { report: spec.report }),
      ...(metadata?.executor && { executor: metadata.executor }),
      agentId: spec?.agentId ?? "",
      ...(spec?.extAgentSettings && { extAgentSettings: spec.extAgentSettings }),
      parameters: spec?.parameters ?? [],
    }),
  );

const jsonOf = (draft: Draft): JsonObject => toJson(CreateWorkflowRequestSchema, draft) as JsonObject;

/** Returns a draft as text, in the contract's own JSON. */
export const textOf = (draft: Draft): string => `${JSON.stringify(jsonOf(draft), undefined, 2)}\n`;

/** Parses a draft from text; returns the problem if that fails. */
export function draftFrom(text: string): { readonly draft: Draft } | { readonly problem: string } {
  try {
    return { draft: fromJson(CreateWorkflowRequestSchema, JSON.parse(text)) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : ConnectError.from(error).rawMessage };
  }
}

/** The fields of a workflow that an update can replace, by their JSON names. */
const FIELDS = [
  "name",
  "description",
  "triggers",
  "action",
  "report",
  "executor",
  "agentId",
  "extAgentSettings",
  "parameters",
] as const;

type Field = (typeof FIELDS)[number];

/** Returns the fields in which two drafts differ. */
export function changedFields(before: Draft, after: Draft): Field[] {
  const [one, other] = [jsonOf(before), jsonOf(after)];
  return FIELDS.filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]));
}

/** Returns a draft with some fields taken from another. */
export const withFields = (draft: Draft, fields: readonly Field[], from: Draft): Draft => ({
  ...draft,
  ...Object.fromEntries(fields.map((field) => [field, from[field]])),
});

/** Paths that the mask must name to clear a field (contract). */
const MASKED: Readonly<Partial<Record<Field, string>>> = {
  triggers: "triggers",
  report: "report",
  parameters: "parameters",
  agentId: "agent_id",
  extAgentSettings: "ext_agent_settings",
};

/** Returns the request that changes only the given fields of a workflow. */
export function updateOf(
  workflowId: string,
  draft: Draft,
  fields: readonly Field[],
): MessageInitShape<typeof UpdateWorkflowRequestSchema> {
  const values = Object.fromEntries(
    fields.map((field) => [
      field,
      field === "executor" ? (draft.executor ?? create(SubjectSchema)) : draft[field],
    ]),
  );
  const paths = fields.flatMap((field) => {
    const value = draft[field];
    const isEmpty =
      value === undefined || ((typeof value === "string" || Array.isArray(value)) && value.length === 0);
    return isEmpty && MASKED[field] ? [MASKED[field]] : [];
  });
  return { workflowId, ...values, ...(paths.length > 0 && { updateMask: { paths } }) };
}
