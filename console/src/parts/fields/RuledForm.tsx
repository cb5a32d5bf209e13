import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Button } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type FocusEvent, type FormEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { Problem } from "../Problem.tsx";
import { RulesContext } from "./fields.tsx";
import type { Breaches } from "./rules.ts";
import { useHeldWhilePressed } from "./use-held.ts";
import "./fields.css";

/** Milliseconds without a key press before the rules are checked. */
const TYPED_MS = 250;

interface RuledFormProps<Desc extends DescMessage> {
  readonly schema: Desc;
  /** The request as filled in; undefined while the input is not valid. */
  readonly message: MessageShape<Desc> | undefined;
  /** True to list all broken rules at the end, for those that no field shows. */
  readonly listsBreaches?: boolean;
  /** The verb of the button at the end. */
  readonly verb: string;
  readonly isBusy: boolean;
  readonly isDisabled?: boolean;
  /** Why saving failed. */
  readonly error: unknown;
  /** Called with a message that breaks no rule of the contract. */
  readonly onDone: (message: MessageShape<Desc>) => void;
  /** Text next to the button. */
  readonly said?: ReactNode;
  readonly children: ReactNode;
}

/** A form for a request. Each field shows which of the contract's rules it breaks. */
export function RuledForm<Desc extends DescMessage>({
  schema,
  message,
  listsBreaches = false,
  verb,
  isBusy,
  isDisabled = false,
  error,
  onDone,
  said,
  children,
}: RuledFormProps<Desc>) {
  const [visited, setVisited] = useState<ReadonlySet<string>>(new Set());
  const [isTried, setIsTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const rules = useRules(schema, message);
  // Messages move the layout when they appear and disappear.
  const shown = useHeldWhilePressed({ breaches: rules.breaches, visited, isTried });
  const count = shown.breaches.size;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsTried(true);
    if (!message || isBusy) return;
    // Checks the current message: the fields may be ahead of the last check.
    const { breachesOf } = await import("./rules.ts");
    const broken = breachesOf(schema, message);
    if (broken.size === 0) return onDone(message);
    const [first] = [...broken.keys()].map((path) =>
      form.current?.querySelector(`[name="${CSS.escape(path)}"]`),
    );
    if (first instanceof HTMLElement) first.focus();
    else
      requestAnimationFrame(() =>
        form.current?.querySelector(".broken")?.scrollIntoView({ block: "center" }),
      );
  };
  const visit = (event: FocusEvent<HTMLFormElement>) => {
    const { name } = event.target as unknown as HTMLInputElement;
    if (name && !visited.has(name)) setVisited(new Set([...visited, name]));
  };
  return (
    <RulesContext
      value={{ breaches: shown.breaches, isShown: (path) => shown.isTried || shown.visited.has(path) }}
    >
      <form ref={form} className="editor" onSubmit={(event) => void submit(event)} onBlur={visit} noValidate>
        {children}
        {/* Not in the foot, which stays in sight and would cover the fields. */}
        {shown.isTried && !listsBreaches && count > 0 && <Broken breaches={shown.breaches} />}
        <div className="editor-foot">
          <Problem error={rules.error ?? error} />
          {listsBreaches && count > 0 && <Broken breaches={shown.breaches} />}
          <div className="row">
            <Button type="submit" loading={isBusy} disabled={!message || isDisabled}>
              {verb}
            </Button>
            {shown.isTried && !listsBreaches && count > 0 && (
              <span className="tone-failed">
                {count.toLocaleString()} {count === 1 ? "problem" : "problems"} to fix.
              </span>
            )}
            {said}
          </div>
        </div>
      </form>
    </RulesContext>
  );
}

/** Returns which rules a message breaks. The rules are loaded when first needed. */
function useRules<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc> | undefined,
): { readonly breaches: Breaches; readonly error: unknown } {
  const [settled] = useDebouncedValue(message, TYPED_MS);
  const { data: rules, error } = useQuery({
    queryKey: ["rules"],
    queryFn: () => import("./rules.ts"),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const breaches = useMemo<Breaches>(
    () => (rules && settled ? rules.breachesOf(schema, settled) : new Map()),
    [rules, schema, settled],
  );
  return { breaches, error };
}

/** Lists all broken rules, with the contract's field names. */
function Broken({ breaches }: { readonly breaches: Breaches }) {
  return (
    <div className="problem" role="alert">
      <ul className="broken">
        {[...breaches].map(([path, sentences]) => (
          <li key={path}>
            <code>{path}</code> {sentences.join("; ")}
          </li>
        ))}
      </ul>
    </div>
  );
}
