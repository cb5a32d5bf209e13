import { useMutation } from "@connectrpc/connect-query";
import { Button, NativeSelect, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { OrganizationRole as Role } from "#gen/service/v1/organization_pb.js";
import { OrganizationService } from "#gen/service/v1/organization_service_pb.js";
import { DialogButton } from "../../parts/DialogButton.tsx";
import { Empty, Section } from "../../parts/Page.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { ShownOnce } from "../../parts/ShownOnce.tsx";
import type { PartProps } from "./Organization.tsx";

const DAY_SECONDS = 86_400;

/** Shows the organization's only invite; creating another revokes the previous one. */
export function Invites({ organizationId, isAdministrator }: PartProps) {
  return (
    <Section
      title="Invites"
      more={
        isAdministrator && (
          <DialogButton label="Create invite" size={560}>
            {(close) => <CreateInvite organizationId={organizationId} onClose={close} />}
          </DialogButton>
        )
      }
    >
      <Empty title="Invite people with a link.">
        <p>
          Anyone with an account here who opens the link joins the organization. There is one invite at a
          time: a new one replaces the old one. People who come through a sign-in provider or SCIM do not need
          one.
        </p>
      </Empty>
    </Section>
  );
}

/** Creates an invite and shows its link, which contains its secret, once. */
function CreateInvite({
  organizationId,
  onClose,
}: {
  readonly organizationId: string;
  readonly onClose: () => void;
}) {
  const [days, setDays] = useState("7");
  const [uses, setUses] = useState("1");
  const [role, setRole] = useState(String(Role.MEMBER));
  const [link, setLink] = useState("");
  const create = useMutation(OrganizationService.method.createOrganizationInvite, {
    gcTime: 0,
    onSuccess({ invite }) {
      setLink(`${location.origin}/organization/join#${invite?.inviteId ?? ""}`);
      create.reset();
    },
  });
  if (link !== "") {
    return (
      <ShownOnce
        note="Send this link to the people you invite. It will not be shown again, and earlier links no longer work."
        text={link}
        what="link"
        onClose={onClose}
      />
    );
  }
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        create.mutate({
          organizationId,
          role: Number(role),
          maxUses: Number(uses),
          validFor: { seconds: BigInt(Number(days) * DAY_SECONDS) },
        });
      }}
    >
      <Problem error={create.error} />
      <NativeSelect
        label="They become"
        value={role}
        onChange={(event) => setRole(event.currentTarget.value)}
        data={[
          { value: String(Role.MEMBER), label: "Members" },
          { value: String(Role.ADMIN), label: "Administrators" },
        ]}
      />
      <TextInput
        label="How many people"
        type="number"
        min={1}
        max={1000}
        required
        value={uses}
        onChange={(event) => setUses(event.currentTarget.value)}
      />
      <NativeSelect
        label="Valid for"
        value={days}
        onChange={(event) => setDays(event.currentTarget.value)}
        data={[
          { value: "1", label: "1 day" },
          { value: "7", label: "7 days" },
          { value: "30", label: "30 days" },
        ]}
      />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create invite
        </Button>
      </div>
    </form>
  );
}
