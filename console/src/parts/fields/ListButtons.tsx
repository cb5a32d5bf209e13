import { Button } from "@mantine/core";
import { Icon } from "../Icon.tsx";

/** The buttons of a member of a list, which name it to those who do not see where they are. */
export function MemberButtons({
  what,
  onMoveUp,
  onRemove,
}: {
  /** Such as "step 2". */
  readonly what: string;
  /** Undefined for the first member, and where the order does not matter. */
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

/** The button below a list that makes another member. */
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
