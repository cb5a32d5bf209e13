import { Button } from "@mantine/core";
import { type OwnOrganization, useOrganizations, useProvider, useSwitch } from "../api/organizations.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { Loaded } from "../parts/Loaded.tsx";
import { Problem } from "../parts/Problem.tsx";

/** Lists the person's organizations, with a way to switch to each. */
export default function Organizations({ onClose }: { readonly onClose: () => void }) {
  const organizations = useOrganizations();
  const change = useSwitch();
  const provider = useProvider();
  return (
    <Dialog title="Your organizations" size={480} onClose={onClose}>
      <div className="stack">
        <Problem error={change.error ?? provider.error} />
        <Loaded reading={organizations}>
          {({ organizations }) => (
            <ul className="organizations">
              {organizations.map((each) => (
                <li key={each.id}>
                  <strong>{each.name}</strong>
                  <Way
                    organization={each}
                    onSwitch={() => change.mutate(each.id)}
                    onProvider={(id) => provider.mutate(id)}
                    isBusy={change.isPending || provider.isPending}
                  />
                </li>
              ))}
            </ul>
          )}
        </Loaded>
        <p className="dim">
          To join another one, you need an invite. A session that began with an access token cannot switch.
        </p>
      </div>
    </Dialog>
  );
}

function Way({
  organization: { name, current, providers },
  onSwitch,
  onProvider,
  isBusy,
}: {
  readonly organization: OwnOrganization;
  readonly onSwitch: () => void;
  readonly onProvider: (id: string) => void;
  readonly isBusy: boolean;
}) {
  if (current) return <span className="dim">You are here</span>;
  if (providers.length === 0)
    return (
      <Button
        size="xs"
        variant="default"
        disabled={isBusy}
        onClick={onSwitch}
        aria-label={`Switch to ${name}`}
      >
        Switch
      </Button>
    );
  return providers.map((each) => (
    <Button key={each.id} size="xs" variant="default" disabled={isBusy} onClick={() => onProvider(each.id)}>
      Sign in with {each.name}
    </Button>
  ));
}
