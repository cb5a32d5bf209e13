import { ActionIcon, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { usePerson } from "../api/person.tsx";
import { Icon } from "../parts/Icon.tsx";

interface TopBarProps {
  readonly onMenu: () => void;
  readonly onPalette: () => void;
  readonly onHelp: () => void;
  readonly onOrganizations: () => void;
}

/** The bar over every page: organization, palette, help, theme and person. */
export function TopBar({ onMenu, onPalette, onHelp, onOrganizations }: TopBarProps) {
  const { user, organization } = usePerson();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const other = scheme === "dark" ? "light" : "dark";
  return (
    <header className="top">
      <span className="top-menu">
        <ActionIcon variant="subtle" color="gray" aria-label="Open the menu" onClick={onMenu}>
          <Icon name="menu" />
        </ActionIcon>
      </span>
      <span className="top-organization">
        <button type="button" title="Your organizations" onClick={onOrganizations}>
          {organization?.name}
        </button>
      </span>
      <button type="button" className="top-search" onClick={onPalette}>
        <Icon name="search" size={14} />
        <span>Go to …</span>
        <kbd>Ctrl K</kbd>
      </button>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={`Use the ${other} theme`}
        onClick={() => setColorScheme(other)}
      >
        <Icon name={other} />
      </ActionIcon>
      <ActionIcon variant="subtle" color="gray" aria-label="Help" onClick={onHelp}>
        <span aria-hidden="true">?</span>
      </ActionIcon>
      <Link to="/account" className="top-person" title="Your account">
        <Icon name="account" />
        <span>{user?.name}</span>
      </Link>
    </header>
  );
}
