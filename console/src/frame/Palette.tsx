import { Modal } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { Icon, type IconName } from "../parts/Icon.tsx";
import { PLACES } from "./Sidebar.tsx";

/** One thing to go to. */
interface Target {
  readonly key: string;
  readonly label: string;
  readonly hint: string;
  readonly icon: IconName;
  readonly to: string;
}

/** Goes to anything by its name: pages first. */
export default function Palette({ onClose }: { readonly onClose: () => void }) {
  return (
    <Modal
      opened
      onClose={onClose}
      withCloseButton={false}
      padding={0}
      size={560}
      yOffset="12vh"
      transitionProps={{ duration: 120 }}
      aria-label="Go to"
    >
      <Search onClose={onClose} />
    </Modal>
  );
}

function Search({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const navigate = useNavigate();
  const wanted = text.trim().toLowerCase();
  const targets: readonly Target[] = PLACES.filter(([, label]) => label.toLowerCase().includes(wanted)).map(
    ([to, label, icon]) => ({ key: to, label, hint: "Page", icon, to }),
  );
  const go = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    void navigate({ to: target.to });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((before) => Math.max(0, Math.min(targets.length - 1, before + step)));
    } else if (event.key === "Enter") go(targets[at]);
  };
  return (
    <div className="palette">
      <input
        // biome-ignore lint/a11y/noAutofocus: the palette was opened to type into
        autoFocus
        className="palette-input"
        placeholder="Go to a page"
        aria-label="Go to"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-targets"
        aria-activedescendant={targets[at] && `palette-${targets[at].key}`}
        value={text}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
      />
      <div id="palette-targets" role="listbox" aria-label="Places" className="palette-targets">
        {targets.map((target, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input
          <div
            key={target.key}
            id={`palette-${target.key}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className="palette-target"
            onClick={() => go(target)}
          >
            <Icon name={target.icon} />
            <span className="cut">{target.label}</span>
            <span className="dim">{target.hint}</span>
          </div>
        ))}
      </div>
      {targets.length === 0 && <p className="dim palette-none">Nothing has this name.</p>}
    </div>
  );
}
