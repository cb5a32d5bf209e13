import { create, fromJson, toJson, toJsonString } from "@bufbuild/protobuf";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Button } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import {
  type OrganizationPolicies,
  OrganizationPoliciesSchema,
  RetentionPolicySchema,
} from "#gen/service/v1/organization_pb.js";
import {
  OrganizationService,
  type UpdateOrganizationPoliciesRequest,
  UpdateOrganizationPoliciesRequestSchema,
} from "#gen/service/v1/organization_service_pb.js";
import { ConfirmButton } from "../../../parts/ConfirmButton.tsx";
import { Loaded } from "../../../parts/Loaded.tsx";
import { Section } from "../../../parts/Page.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import type { PartProps } from "../Organization.tsx";
import { keepEdits, keptEdits, NO_EDITS } from "./edits.ts";
import { FieldRow } from "./FieldRow.tsx";
import { POLICY_FIELDS, POLICY_GROUPS } from "./fields.ts";
import { PolicyEffects } from "./PolicyEffects.tsx";
import { RetentionPreview } from "./RetentionPreview.tsx";
import { changeOf, typedOf } from "./typed.ts";
import "../../../parts/work.css";

/**
 * Shows the policies as a form: each field says where it applies, and the effects of a change are shown before it is
 * made.
 */
export function Policies({ organizationId, isAdministrator }: PartProps) {
  const policies = useQuery(
    OrganizationService.method.getOrganizationPolicies,
    { organizationId },
    // Keeps what is typed: another administrator's change appears at the next visit.
    { refetchInterval: false, staleTime: 0, refetchOnWindowFocus: false },
  );
  return (
    <Loaded reading={policies} lines={12}>
      {({ policies: read }) =>
        read && (
          <>
            <PolicyForm
              policies={read}
              isAdministrator={isAdministrator}
              organizationId={organizationId}
              onSaved={() => policies.refetch()}
            />
            {isAdministrator && (
              <RetentionPreview
                // Amounts that were counted under another policy are no longer valid.
                key={read.retention ? toJsonString(RetentionPolicySchema, read.retention) : ""}
                organizationId={organizationId}
              />
            )}
          </>
        )
      }
    </Loaded>
  );
}

interface PolicyFormProps extends PartProps {
  readonly policies: OrganizationPolicies;
  readonly onSaved: () => Promise<unknown>;
}

function PolicyForm({ policies, isAdministrator, organizationId, onSaved }: PolicyFormProps) {
  const saved = typedOf(toJson(OrganizationPoliciesSchema, policies));
  const [{ edits, begun }, setTyped] = useState(() => keptEdits(saved));
  useEffect(() => keepEdits({ edits, begun }), [edits, begun]);
  const [unreadable, setUnreadable] = useState<Error>();
  const [change, setChange] = useState<UpdateOrganizationPoliciesRequest>();
  const preview = useMutation(OrganizationService.method.previewOrganizationPolicies);
  const update = useMutation(OrganizationService.method.updateOrganizationPolicies, {
    onSuccess: onSaved,
  });
  const save = (sent: UpdateOrganizationPoliciesRequest) =>
    update.mutate(sent, {
      // Not called when something was edited in the meantime, so the edit is kept.
      onSuccess() {
        forget();
        setChange(undefined);
        preview.reset();
      },
    });
  const forget = () => setTyped(NO_EDITS);
  const typed = { ...saved, ...edits };
  const changed = Object.keys(typed).filter((path) => typed[path] !== saved[path]);
  // Fields that others have changed as well.
  const others = POLICY_FIELDS.filter(({ path }) => changed.includes(path) && begun[path] !== saved[path]);
  const edit = (path: string, value: string) => {
    const { [path]: _, ...otherEdits } = edits;
    const { [path]: first = saved[path] ?? "", ...otherBegun } = begun;
    // A field with the saved value is unchanged, whatever others do to it later.
    const isBack = value === saved[path];
    setTyped({
      edits: isBack ? otherEdits : { ...otherEdits, [path]: value },
      begun: isBack ? otherBegun : { ...otherBegun, [path]: first },
    });
    setChange(undefined);
    setUnreadable(undefined);
    preview.reset();
    update.reset();
  };
  const review = (event: FormEvent) => {
    event.preventDefault();
    try {
      const json = changeOf(saved, typed);
      if (!json) return;
      const request = fromJson(UpdateOrganizationPoliciesRequestSchema, { organizationId, ...json });
      setChange(request);
      preview.mutate({ change: create(UpdateOrganizationPoliciesRequestSchema, request) });
    } catch (error) {
      setUnreadable(error as Error);
    }
  };
  return (
    <form onSubmit={review}>
      {POLICY_GROUPS.map(({ title, fields }) => (
        <Section key={title} title={title}>
          <div className="policies">
            {fields.map((field) => (
              <FieldRow
                key={field.path}
                field={field}
                value={typed[field.path] ?? ""}
                isChanged={changed.includes(field.path)}
                disabled={!isAdministrator}
                onChange={(value) => edit(field.path, value)}
              />
            ))}
          </div>
        </Section>
      ))}
      {changed.length > 0 && (
        <section className="card review" aria-label="Change">
          {unreadable && (
            <p role="alert" className="tone-failed">
              {unreadable.message}
            </p>
          )}
          <Problem error={preview.error ?? update.error} />
          {others.length > 0 && (
            <div className="bar bar-asks" role="status">
              Someone changed this while you were editing. Saving overwrites that change:
              <ul>
                {others.map(({ path, label }) => (
                  <li key={path}>
                    {label}, now: <code>{saved[path] || "none"}</code>
                  </li>
                ))}
              </ul>
            </div>
          )}
          {change && preview.data ? (
            <>
              <PolicyEffects preview={preview.data} />
              <div className="row">
                <Button loading={update.isPending} onClick={() => save(change)}>
                  Save policies
                </Button>
                <Button
                  variant="default"
                  onClick={() => {
                    setChange(undefined);
                    preview.reset();
                  }}
                >
                  Continue editing
                </Button>
              </div>
            </>
          ) : (
            <div className="row">
              <Button type="submit" loading={preview.isPending}>
                Preview the effects
              </Button>
              <ConfirmButton
                label="Discard"
                question={`Discards your changes to ${changed.length === 1 ? "this field" : `these ${changed.length} fields`}.`}
                size="sm"
                onConfirm={forget}
              />
              <span className="dim">
                {changed.length} {changed.length === 1 ? "field" : "fields"} changed
              </span>
            </div>
          )}
        </section>
      )}
    </form>
  );
}
