import { Button } from "@mantine/core";
import { Icon } from "../Icon.tsx";

/** The buttons of a list element. Their labels name it for people who cannot see its position. */
export function MemberButtons({
  what,
  onMoveUp,
  onRemove,
}: {
  /** Such as "step 2". */
  readonly what: string;
  /** Undefined for the first element, and when the order does not matter. */
  readonly onMoveUp?: (() => void) | undefined;
  readonly onRemove: () => void;
}) {
  return (
    <span className="row">
      {onMoveUp && (
        <Button variant="subtle" size="compact-xs" aria-label={`Move up ${what}`} onClick={onMoveUp}>
          Move up
        </Button>
      )}
      <Button variant="subtle" color="red" size="compact-xs" aria-label={`Remove ${what}`} onClick={onRemove}>
        Remove
      </Button>
    </span>
  );
}

/** The button below a list that adds an element. */
export function AddButton({
  label,
  disabled,
  onAdd,
}: {
  readonly label: string;
  readonly disabled: boolean;
  readonly onAdd: () => void;
}) {
  return (
    <div className="row">
      <Button
        variant="default"
        size="xs"
        leftSection={<Icon name="plus" size={14} />}
        disabled={disabled}
        onClick={onAdd}
      >
        {label}
      </Button>
    </div>
  );
}
