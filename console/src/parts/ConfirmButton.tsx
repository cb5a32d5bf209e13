import { Button, Popover } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

interface ConfirmButtonProps {
  /** The verb, on both buttons. */
  readonly label: string;
  /** What it will do, with numbers. */
  readonly question: string;
  readonly onConfirm: () => void;
  readonly isBusy?: boolean;
  readonly disabled?: boolean;
}

/** A button of something that cannot be undone: it says what it will do, and asks once. */
export function ConfirmButton({
  label,
  question,
  onConfirm,
  isBusy = false,
  disabled = false,
}: ConfirmButtonProps) {
  const [isOpen, { toggle, close }] = useDisclosure();
  return (
    <Popover
      opened={isOpen}
      onChange={close}
      position="bottom-end"
      width={300}
      trapFocus
      shadow="md"
      // The question stays where a page that goes on scrolls the button out of sight.
      hideDetached={false}
    >
      <Popover.Target>
        <Button variant="default" size="xs" onClick={toggle} loading={isBusy} disabled={disabled}>
          {label}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <div className="stack">
          <p>{question}</p>
          <div className="row">
            <Button
              color="red"
              size="xs"
              onClick={() => {
                close();
                onConfirm();
              }}
            >
              {label}
            </Button>
            <Button variant="default" size="xs" onClick={close}>
              Leave it
            </Button>
          </div>
        </div>
      </Popover.Dropdown>
    </Popover>
  );
}
