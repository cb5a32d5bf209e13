import { Button, Checkbox } from "@mantine/core";
import { type ApprovalDeciders, ApprovalDeciders_Who as Who } from "#gen/service/v1/approval_pb.js";
import { Principal } from "#gen/service/v1/identity_pb.js";
import { Who as NameOf } from "../../../api/person.tsx";
import { ChoiceField, NumberField, PartBreach } from "../../../parts/fields/fields.tsx";
import { GroupName, GroupPicker } from "../../../parts/pickers/GroupPicker.tsx";
import { MemberPicker } from "../../../parts/pickers/MemberPicker.tsx";

/** Maximum users and groups that decide (contract). */
const MAX_USERS = 50;
const MAX_GROUPS = 10;

const WHO: readonly (readonly [string, string])[] = [
  [String(Who.STARTER_AND_ADMINISTRATORS), "The person who started it, and administrators"],
  [String(Who.ADMINISTRATORS), "Administrators"],
  [String(Who.USERS), "Named people and groups"],
];

interface DeciderFieldsProps {
  /** The path of the deciders in the contract. */
  readonly path: string;
  readonly deciders: ApprovalDeciders;
  readonly onChange: (deciders: ApprovalDeciders) => void;
}

/** Edits who decides an approval step, and how many of them must approve. */
export function DeciderFields({ path, deciders, onChange }: DeciderFieldsProps) {
  const { userIds, groupIds } = deciders;
  const set = (change: Partial<ApprovalDeciders>) => onChange({ ...deciders, ...change });
  const isNamed = deciders.who === Who.USERS;
  return (
    <>
      <div className="field-row">
        <ChoiceField
          path={`${path}.who`}
          label="Who decides"
          value={String(deciders.who || Who.STARTER_AND_ADMINISTRATORS)}
          choices={WHO}
          // Only that choice has names (contract).
          onChange={(who) => set({ who: Number(who), userIds: [], groupIds: [] })}
        />
        <NumberField
          path={`${path}.required`}
          label="Required approvals"
          value={deciders.required || 1}
          onChange={(required) => set({ required: Math.trunc(required ?? 0) })}
        />
      </div>
      {isNamed && (
        <div className="stack">
          <PartBreach path={`${path}.user_ids`} />
          <PartBreach path={`${path}.group_ids`} />
          {userIds.length + groupIds.length === 0 && <p className="dim">Nobody is selected yet.</p>}
          <ul className="chosen" aria-label="Who decides">
            {userIds.map((id) => (
              <li key={id} className="row">
                <NameOf subject={{ $typeName: "service.v1.Subject", id, principal: Principal.USER }} />
                <Remove onRemove={() => set({ userIds: userIds.filter((each) => each !== id) })} />
              </li>
            ))}
            {groupIds.map((id) => (
              <li key={id} className="row">
                <span>
                  The group <GroupName id={id} />
                </span>
                <Remove onRemove={() => set({ groupIds: groupIds.filter((each) => each !== id) })} />
              </li>
            ))}
          </ul>
          <div className="field-row">
            <MemberPicker
              label="Add a person"
              chosen={userIds}
              disabled={userIds.length >= MAX_USERS}
              onChoose={({ id }) => set({ userIds: [...userIds, id] })}
            />
            <GroupPicker
              label="Add a group"
              chosen={groupIds}
              disabled={groupIds.length >= MAX_GROUPS}
              onChoose={({ id }) => set({ groupIds: [...groupIds, id] })}
            />
          </div>
        </div>
      )}
      <Checkbox
        label="Exclude the person who started it and the account it runs as"
        checked={deciders.excludesStarter}
        onChange={(event) => set({ excludesStarter: event.currentTarget.checked })}
      />
    </>
  );
}

function Remove({ onRemove }: { readonly onRemove: () => void }) {
  return (
    <Button variant="subtle" color="red" size="compact-xs" onClick={onRemove}>
      Remove
    </Button>
  );
}
