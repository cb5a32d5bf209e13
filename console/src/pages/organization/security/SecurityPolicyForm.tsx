import { create, equals } from "@bufbuild/protobuf";
import { useMutation } from "@connectrpc/connect-query";
import { Button, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import {
  SecurityPolicy_Effect as Effect,
  SecurityPolicy_Spec_ExecutablePolicySchema as ExecutablesSchema,
  type SecurityPolicy,
  SecurityPolicy_SpecSchema as SpecSchema,
} from "#gen/service/v1/security_pb.js";
import { SecurityService } from "#gen/service/v1/security_service_pb.js";
import { queries } from "../../../api/server.tsx";
import { ChangedMeanwhile } from "../../../parts/fields/Edited.tsx";
import { Problem } from "../../../parts/Problem.tsx";

const pathsOf = (policy: SecurityPolicy | undefined, effect: Effect): string =>
  (policy?.spec?.executables?.rules ?? [])
    .filter((rule) => rule.effect === effect)
    .map(({ path }) => path)
    .join("\n");

const rulesOf = (text: string, effect: Effect) =>
  text.split("\n").flatMap((line) => (line.trim() ? [{ path: line.trim(), effect }] : []));

const isSamePolicy = (one: SecurityPolicy, other: SecurityPolicy): boolean =>
  one.metadata?.name === other.metadata?.name &&
  equals(SpecSchema, one.spec ?? create(SpecSchema), other.spec ?? create(SpecSchema));

interface SecurityPolicyFormProps {
  readonly organizationId: string;
  /** Undefined for a new one. */
  readonly policy: SecurityPolicy | undefined;
  readonly onDone: () => void;
}

/** The form of a security policy: the programs to block, and those to log. */
export function SecurityPolicyForm({ organizationId, policy: stored, onDone }: SecurityPolicyFormProps) {
  // A notice shows what others save while the form is open; it must not count as typed here.
  const [policy] = useState(stored);
  const before = { blocked: pathsOf(policy, Effect.BLOCK), noted: pathsOf(policy, Effect.AUDIT) };
  const [name, setName] = useState(policy?.metadata?.name ?? "");
  const [blocked, setBlocked] = useState(before.blocked);
  const [noted, setNoted] = useState(before.noted);
  const settled = {
    onSuccess() {
      void queries.invalidateQueries();
      onDone();
    },
  };
  const add = useMutation(SecurityService.method.createSecurityPolicy, settled);
  const change = useMutation(SecurityService.method.updateSecurityPolicy, settled);
  const save = (event: FormEvent) => {
    event.preventDefault();
    const metadata = { name };
    const isRenamed = name !== policy?.metadata?.name;
    const { spec } = policy ?? {};
    const hasNewRules = !policy || blocked !== before.blocked || noted !== before.noted;
    const executables = create(ExecutablesSchema, {
      defaultEffect: spec?.executables?.defaultEffect ?? Effect.UNSPECIFIED,
      rules: [
        ...rulesOf(blocked, Effect.BLOCK),
        ...rulesOf(noted, Effect.AUDIT),
        // Rules that the form does not show do not change.
        ...(spec?.executables?.rules ?? []).filter(
          ({ effect }) => effect !== Effect.BLOCK && effect !== Effect.AUDIT,
        ),
      ],
    });
    const changed = create(SpecSchema, { ...(spec?.ports && { ports: spec.ports }), executables });
    if (!policy) return add.mutate({ organizationId, metadata, spec: changed });
    change.mutate({
      securityPolicyId: policy.id,
      ...(isRenamed && { metadata }),
      ...(hasNewRules && { spec: changed }),
    });
  };
  return (
    <form className="stack" onSubmit={save}>
      <Problem error={add.error ?? change.error} />
      {policy && stored && !isSamePolicy(policy, stored) && <ChangedMeanwhile what="the security policy" />}
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={80}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Blocked programs, one per line"
        description="A path such as /usr/bin/curl, or a bare name for every program with that name. A renamed program is not blocked: this is a guard rail, not a security boundary."
        placeholder="curl"
        autosize
        minRows={3}
        maxRows={12}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={blocked}
        onChange={(event) => setBlocked(event.currentTarget.value)}
      />
      <Textarea
        label="Audited programs, one per line"
        description="No isolation can audit programs yet: a policy with such a rule can be saved, but not assigned."
        autosize
        minRows={2}
        maxRows={12}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={noted}
        onChange={(event) => setNoted(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" loading={add.isPending || change.isPending}>
          {policy ? "Save security policy" : "Create security policy"}
        </Button>
      </div>
    </form>
  );
}
