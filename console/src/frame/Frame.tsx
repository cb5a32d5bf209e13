import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { Outlet, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { useEvents } from "../api/events.ts";
import { usePerson } from "../api/person.tsx";
import { goToSignIn, signInAddress, signInAgain, useValue } from "../api/session.ts";
import { useOtherTabs } from "../api/tabs.ts";
import { forgetTypedOfOthers } from "../api/typed.ts";
import { Loaded } from "../parts/Loaded.tsx";
import { loadedPart } from "../parts/loaded-part.tsx";
import { NotOpened } from "./Fallbacks.tsx";
import { moveBetweenRows, toggleChoiceOfRow } from "./rows.ts";
import { Sidebar } from "./Sidebar.tsx";
import { TopBar } from "./TopBar.tsx";

// What opens over the page is loaded when it is opened for the first time.
const Drawer = loadedPart(async () => (await import("./SideDrawer.tsx")).default, { failed: NotOpened });
const Help = loadedPart(async () => (await import("./Help.tsx")).default, { failed: NotOpened });
const Organizations = loadedPart(async () => (await import("./Organizations.tsx")).default, {
  failed: NotOpened,
});
const Palette = loadedPart(async () => (await import("./Palette.tsx")).default, { failed: NotOpened });

/** The frame of every page. A person who is not signed in goes to the sign-in page first and then returns. */
export function Frame() {
  const { reading, user } = usePerson();
  const isRefused = useValue(signInAgain);
  const isOut = isRefused && user === undefined;
  useOtherTabs();
  const first = useRef<string>(undefined);
  useEffect(() => {
    if (isOut) goToSignIn();
    if (user === undefined) return;
    first.current ??= user.id;
    // This browser's session now belongs to somebody else or to another organization, which must not see this page.
    if (first.current !== user.id) location.replace("/");
  }, [isOut, user]);
  if (isOut) return null;
  if (user === undefined) {
    return (
      <main className="alone">
        <Loaded reading={reading}>{() => null}</Loaded>
      </main>
    );
  }
  return <SignedIn userId={user.id} isRefused={isRefused} />;
}

function SignedIn({ userId, isRefused }: { readonly userId: string; readonly isRefused: boolean }) {
  // Runs before the page inside reads what the tab keeps.
  useState(() => forgetTypedOfOthers(userId));
  const [isDrawerOpen, drawer] = useDisclosure();
  const [isPaletteOpen, palette] = useDisclosure();
  const [isHelpOpen, help] = useDisclosure();
  const [isChoosing, choice] = useDisclosure();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const events = useEvents();
  const isLoading = useRouterState({ select: ({ isLoading }) => isLoading });
  // Also works while somebody types: no field needs these keys.
  useHotkeys([["mod+K", palette.toggle]], []);
  useHotkeys([
    ["?", help.toggle],
    ["j", () => moveBetweenRows(1)],
    ["k", () => moveBetweenRows(-1)],
    ["x", toggleChoiceOfRow],
  ]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the drawer
  useEffect(drawer.close, [path]);
  return (
    <div className="frame">
      <button type="button" className="skip" onClick={() => document.getElementById("content")?.focus()}>
        Go to the content
      </button>
      <div className="side">
        <Sidebar />
      </div>
      <TopBar
        onMenu={drawer.open}
        onPalette={palette.open}
        onHelp={help.open}
        onOrganizations={choice.open}
      />
      {isLoading && <div className="progress soon" role="status" aria-label="Loading the page" />}
      <main id="content" className="content" tabIndex={-1}>
        {isRefused && <SignedOut />}
        {isDrawerOpen && <Drawer onClose={drawer.close} />}
        {isPaletteOpen && <Palette onClose={palette.close} />}
        {isHelpOpen && <Help onClose={help.close} />}
        {isChoosing && <Organizations onClose={choice.close} />}
        {events === "behind" && !isRefused && <Behind />}
        <Outlet />
      </main>
    </div>
  );
}

/** Hidden for the first seconds, in which a page is not behind but still loading. */
function Behind() {
  return (
    <p className="bar late" role="status">
      This page may be out of date: it is waiting for the server's events and reloads every minute.
    </p>
  );
}

function SignedOut() {
  return (
    <p className="bar bar-asks" role="alert">
      Your session has ended. What you typed is kept:{" "}
      <a href={signInAddress()} target="_blank" rel="noreferrer">
        sign in again in another tab
      </a>
      , then continue.
    </p>
  );
}
