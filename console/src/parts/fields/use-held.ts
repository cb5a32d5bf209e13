import { useEffect, useRef, useState } from "react";

/**
 * Returns the value, but the one from before while a mouse button or a finger is down anywhere on the page. What it
 * draws then does not move a button between press and release, where the browser would not click it.
 */
export function useHeldWhilePressed<T>(value: T): T {
  const isPressed = useIsPressed();
  const held = useRef(value);
  if (!isPressed) held.current = value;
  return held.current;
}

function useIsPressed(): boolean {
  const [isPressed, setIsPressed] = useState(false);
  useEffect(() => {
    let released: ReturnType<typeof setTimeout> | undefined;
    const press = ({ button }: MouseEvent) => {
      if (button !== 0) return;
      clearTimeout(released);
      setIsPressed(true);
    };
    // The click follows the release in the same task.
    const release = () => {
      clearTimeout(released);
      released = setTimeout(() => setIsPressed(false));
    };
    // The mouse events of a touch follow the release of its pointer.
    const presses = ["pointerdown", "mousedown"] as const;
    // The open list of a select keeps the release to itself.
    const releases = ["pointerup", "pointercancel", "mouseup", "dragend", "input", "keydown"] as const;
    for (const name of presses) addEventListener(name, press, true);
    for (const name of releases) addEventListener(name, release, true);
    return () => {
      clearTimeout(released);
      for (const name of presses) removeEventListener(name, press, true);
      for (const name of releases) removeEventListener(name, release, true);
    };
  }, []);
  return isPressed;
}
