import { createClient } from "@connectrpc/connect";
import { Button, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { EventFormat, type EventSubscription } from "#gen/service/v1/event_subscription_pb.js";
import { EventSubscriptionService } from "#gen/service/v1/event_subscription_service_pb.js";
import { transport } from "../../../api/server.tsx";
import { ChangedMeanwhile } from "../../../parts/fields/Edited.tsx";
import { Problem } from "../../../parts/Problem.tsx";
import { ShownOnce } from "../../../parts/ShownOnce.tsx";

const subscriptions = createClient(EventSubscriptionService, transport);

/** The events that people wait for: the default of a new webhook. */
const USUAL = [
  "agent_execution.waits_for_input",
  "approval.asked",
  "agent_execution.failed",
  "workflow_execution.failed",
];

const linesOf = ({ eventKinds }: EventSubscription): string => eventKinds.join("\n");

const isSameWebhook = (one: EventSubscription, other: EventSubscription): boolean =>
  one.name === other.name &&
  one.target === other.target &&
  one.format === other.format &&
  linesOf(one) === linesOf(other);

/** Creates a webhook and shows its secret once, or changes a webhook. The page does not keep the address. */
export function WebhookForm({
  subscription: stored,
  onDone,
  onClose,
}: {
  /** Undefined for a new one. */
  readonly subscription?: EventSubscription;
  readonly onDone: () => void;
  readonly onClose: () => void;
}) {
  // A notice shows what others save while the form is open; it must not count as typed here.
  const [subscription] = useState(stored);
  const kindsBefore = subscription ? linesOf(subscription) : USUAL.join("\n");
  const [name, setName] = useState(subscription?.name ?? "");
  const [url, setUrl] = useState("");
  const [kinds, setKinds] = useState(kindsBefore);
  const [format, setFormat] = useState(subscription?.format ?? EventFormat.STANDARD);
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<unknown>();
  const [isBusy, setIsBusy] = useState(false);
  if (secret !== "") {
    const note = "Copy the secret now. It will not be shown again. Receivers use it to verify events.";
    return <ShownOnce note={note} text={secret} what="secret" onClose={onClose} />;
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    setError(undefined);
    const eventKinds = kinds.split(/[\s,]+/).filter(Boolean);
    try {
      if (subscription) {
        await subscriptions.updateEventSubscription({
          eventSubscriptionId: subscription.id,
          ...(name !== subscription.name && { name }),
          ...(kinds !== kindsBefore && { eventKinds }),
          ...(format !== subscription.format && { format }),
          ...(url !== "" && { url }),
        });
        onDone();
        onClose();
      } else {
        const made = await subscriptions.createEventSubscription({ name, url, eventKinds, format });
        onDone();
        setSecret(made.secret);
      }
    } catch (reason) {
      setError(reason);
    }
    setIsBusy(false);
  };
  return (
    <form className="stack" onSubmit={(event) => void submit(event)}>
      <Problem error={error} />
      {subscription && stored && !isSameWebhook(subscription, stored) && (
        <ChangedMeanwhile what="the webhook" />
      )}
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={80}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Address"
        description={
          subscription
            ? `It is at ${subscription.target} and is not shown in full. If empty, it does not change.`
            : "An https address. It is not shown again, because the addresses of chat services contain a credential."
        }
        placeholder="https://hooks.example.org/chartroom"
        required={!subscription}
        maxLength={2048}
        autoComplete="off"
        spellCheck={false}
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
      />
      <NativeSelect
        label="Sent as"
        value={String(format)}
        onChange={(event) => setFormat(Number(event.currentTarget.value) as EventFormat)}
        data={[
          { value: String(EventFormat.STANDARD), label: "Signed events for programs" },
          { value: String(EventFormat.CHAT_TEXT), label: "Messages for a chat service" },
        ]}
      />
      <Textarea
        label="Events, one per line"
        description="A resource and what happened to it, such as project.created. Use project.* for everything about a resource, * for everything."
        required
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        classNames={{ input: "mono" }}
        value={kinds}
        onChange={(event) => setKinds(event.currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" loading={isBusy}>
          {subscription ? "Save" : "Create webhook"}
        </Button>
      </div>
    </form>
  );
}
