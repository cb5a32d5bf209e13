import { Button, CopyButton } from "@mantine/core";

/** A secret, or a command that contains one, which the server shows only once. */
export function ShownOnce({
  note,
  text,
  what,
  onClose,
}: {
  readonly note: string;
  readonly text: string;
  /** Names the text on the button, such as "token". */
  readonly what: string;
  readonly onClose: () => void;
}) {
  return (
    <div className="stack">
      <p>{note}</p>
      <code className="secret">{text}</code>
      <div className="row">
        <CopyButton value={text}>
          {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : `Copy ${what}`}</Button>}
        </CopyButton>
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
      </div>
    </div>
  );
}
