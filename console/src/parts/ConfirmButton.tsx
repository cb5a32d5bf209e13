import { Button, Popover } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

interface ConfirmButtonProps {
  /** The verb on both buttons. */
  readonly label: string;
  /** What it will do, including numbers. */
  readonly question: string;
  readonly onConfirm: () => void;
  /** The same as the buttons next to it; small by default. */
  readonly size?: "sm" | "xs" | "compact-xs";
  /** True for a less important action. */
  readonly isSubtle?: boolean;
  readonly isBusy?: boolean;
  readonly disabled?: boolean;
}

/** A button for something that cannot be undone. It says what it will do, and asks once. */
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
      // The question remains when a growing page scrolls the button out of view.
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
