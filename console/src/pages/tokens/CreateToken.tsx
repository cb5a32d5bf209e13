import { Button, Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Problem } from "../../parts/Problem.tsx";
import { ShownOnce } from "../../parts/ShownOnce.tsx";

const DAY_SECONDS = 86_400;

/** The values of the form. */
export interface TokenOrder {
  readonly description: string;
  readonly readOnly: boolean;
  readonly validFor: { readonly seconds: bigint };
}

interface CreateTokenProps {
  /** True when the form offers read-only tokens. */
  readonly offersReadOnly?: boolean;
  /** Creates the token and returns it. Only the dialog keeps the value. */
  readonly onCreate: (order: TokenOrder) => Promise<string>;
  readonly onClose: () => void;
}

/** Creates a token and shows it once. Closing the dialog removes it from the page. */
export function CreateToken({ offersReadOnly = false, onCreate, onClose }: CreateTokenProps) {
  const [description, setDescription] = useState("");
  const [days, setDays] = useState("30");
  const [readOnly, setReadOnly] = useState(false);
  const [token, setToken] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  if (token !== "") {
    const note = "Copy the token now. It will not be shown again.";
    return <ShownOnce note={note} text={token} what="token" onClose={onClose} />;
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    try {
      const validFor = { seconds: BigInt(Number(days) * DAY_SECONDS) };
      setToken(await onCreate({ description, readOnly, validFor }));
    } catch (reason) {
      setError(reason);
    }
    setIsBusy(false);
  };
  return (
    <form className="stack" onSubmit={(event) => void submit(event)}>
      <Problem error={error} />
      <TextInput
        label="Description"
        data-autofocus
        maxLength={500}
        value={description}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      <NativeSelect
        label="Valid for"
        value={days}
        onChange={(event) => setDays(event.currentTarget.value)}
        data={["7", "30", "90"].map((value) => ({ value, label: `${value} days` }))}
      />
      {offersReadOnly && (
        <Checkbox
          label="Read-only: can read, but not change anything"
          checked={readOnly}
          onChange={(event) => setReadOnly(event.currentTarget.checked)}
        />
      )}
      <div className="row">
        <Button type="submit" loading={isBusy}>
          Create token
        </Button>
      </div>
    </form>
  );
}
