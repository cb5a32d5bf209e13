import { Button, Popover } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

interface ConfirmButtonProps {
  /** The verb, on both buttons. */
  readonly label: string;
  /** What it will do, with numbers. */
  readonly question: string;
  readonly onConfirm: () => void;
  /** As the buttons next to it; small unless given. */
  readonly size?: "sm" | "xs" | "compact-xs";
  /** True where it is the lesser of what can be done. */
  readonly isSubtle?: boolean;
  readonly isBusy?: boolean;
  readonly disabled?: boolean;
}

/** A button of something that cannot be undone: it says what it will do, and asks once. */
export function ConfirmButton({
  label,
  question,
  onConfirm,
  size = "xs",
  isSubtle = false,
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
      returnFocus
      shadow="md"
      // The question stays where a page that goes on scrolls the button out of sight.
      hideDetached={false}
    >
      <Popover.Target>
        <Button
          variant={isSubtle ? "subtle" : "default"}
          size={size}
          onClick={toggle}
          loading={isBusy}
          disabled={disabled}
        >
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
