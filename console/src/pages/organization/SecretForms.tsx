import { useMutation } from "@connectrpc/connect-query";
import { Button, Checkbox, NativeSelect, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Secret } from "#gen/service/v1/secret_pb.js";
import { SecretService } from "#gen/service/v1/secret_service_pb.js";
import { Problem } from "../../parts/Problem.tsx";

/** Creates a secret of the organization: a variable, a file, or a header that work never sees. */
export function CreateSecret({
  organizationId,
  onCreated,
  onClose,
}: {
  readonly organizationId: string;
  readonly onCreated: () => void;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [kind, setKind] = useState("environmentVariable");
  const [path, setPath] = useState("");
  const [hosts, setHosts] = useState("");
  const [header, setHeader] = useState("Authorization");
  const isPutIn = kind === "header" || kind === "headerAndVariable";
  const create = useMutation(SecretService.method.createSecret, {
    gcTime: 0,
    onSuccess() {
      onCreated();
      onClose();
    },
  });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        create.mutate({
          name,
          value,
          scope: { scope: { case: "organizationId", value: organizationId } },
          mount:
            kind === "filePath"
              ? { case: "filePath", value: path }
              : kind === "header"
                ? { case: "apiOnly", value: true }
                : { case: "environmentVariable", value: true },
          ...(isPutIn && { credentialProxy: { targetHosts: hosts.split(/[\s,]+/).filter(Boolean), header } }),
        });
      }}
    >
      <Problem error={create.error} />
      <TextInput
        label="Name"
        description="Letters, digits and underscores. For a variable, this is its name."
        required
        data-autofocus
        minLength={3}
        maxLength={127}
        pattern="[0-9a-zA-Z_]{3,}"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <NativeSelect
        label="Available as"
        value={kind}
        onChange={(event) => setKind(event.currentTarget.value)}
        data={[
          { value: "environmentVariable", label: "A variable of the environment" },
          { value: "filePath", label: "A file" },
          { value: "header", label: "A header of requests, never seen by work" },
          { value: "headerAndVariable", label: "A header of requests, with a placeholder as a variable" },
        ]}
      />
      {kind === "filePath" && (
        <TextInput
          label="Path of the file"
          placeholder="/home/dev/.netrc"
          required
          maxLength={1024}
          value={path}
          onChange={(event) => setPath(event.currentTarget.value)}
        />
      )}
      {isPutIn && (
        <>
          <p className="dim">
            Work never gets the value: the proxy of its runner puts it into requests over HTTPS to these
            hosts, which the policy “Hosts that isolated work may reach” has to allow. A runner that isolates
            nothing leaves it out, with a warning.
          </p>
          <Textarea
            label="Hosts, one per line"
            description="Host names, with a port if it is not 443. No IP addresses."
            placeholder="api.example.org"
            required
            autosize
            minRows={1}
            maxRows={6}
            spellCheck={false}
            classNames={{ input: "mono" }}
            value={hosts}
            onChange={(event) => setHosts(event.currentTarget.value)}
          />
          <TextInput
            label="Header"
            description="The value is the whole header value, such as Bearer and a token."
            required
            maxLength={128}
            classNames={{ input: "mono" }}
            value={header}
            onChange={(event) => setHeader(event.currentTarget.value)}
          />
        </>
      )}
      <ValueInput value={value} onChange={setValue} hasLines={!isPutIn} />
      <div className="row">
        <Button type="submit" loading={create.isPending}>
          Create secret
        </Button>
      </div>
    </form>
  );
}

/** Gives a secret another value. */
export function ReplaceValue({
  secret,
  onReplaced,
  onClose,
}: {
  readonly secret: Secret;
  readonly onReplaced: () => void;
  readonly onClose: () => void;
}) {
  const [value, setValue] = useState("");
  const replace = useMutation(SecretService.method.updateSecretValue, {
    gcTime: 0,
    onSuccess() {
      onReplaced();
      onClose();
    },
  });
  return (
    <form
      className="stack"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        replace.mutate({ secretId: secret.id, value });
      }}
    >
      <Problem error={replace.error} />
      <p>Environments that start from now on get the new value.</p>
      <ValueInput value={value} onChange={setValue} hasLines={!secret.credentialProxy} />
      <div className="row">
        <Button type="submit" loading={replace.isPending}>
          Replace value
        </Button>
      </div>
    </form>
  );
}

function ValueInput({
  value,
  hasLines,
  onChange,
}: {
  readonly value: string;
  /** Whether the value may have several lines, as files and keys do. A single-line field would drop the line breaks. */
  readonly hasLines: boolean;
  readonly onChange: (value: string) => void;
}) {
  const [isShown, setIsShown] = useState(false);
  const common = { label: "Value", required: true, maxLength: 10_240, value };
  if (!hasLines) {
    return (
      <TextInput
        {...common}
        type="password"
        autoComplete="new-password"
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return (
    <>
      <Textarea
        {...common}
        description={
          value.endsWith("\n")
            ? "The final line break is part of the value."
            : "The whole value, including line breaks."
        }
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        rows={5}
        classNames={{ input: isShown ? "mono" : "mono covered" }}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <Checkbox
        label="Reveal"
        checked={isShown}
        onChange={(event) => setIsShown(event.currentTarget.checked)}
      />
    </>
  );
}
