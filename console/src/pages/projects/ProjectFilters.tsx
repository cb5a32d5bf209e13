import { useQuery } from "@connectrpc/connect-query";
import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { RunnerService } from "#gen/service/v1/runner_service_pb.js";
import { UserService } from "#gen/service/v1/user_service_pb.js";
import { usePerson } from "../../api/person.tsx";
import { Problem } from "../../parts/Problem.tsx";
import { MemberPicker } from "../../parts/pickers/MemberPicker.tsx";
import { countFilters, ORDERS, type ProjectsSearch, RUNNER_KINDS } from "./project-filters.ts";

/** Filters and order of the list of projects; each is in the address. */
export function ProjectFilters() {
  const search = useSearch({ from: "/projects" });
  const navigate = useNavigate();
  const count = countFilters(search);
  const [isOpen, setIsOpen] = useState(count > 0);
  const toggle = useRef<HTMLButtonElement>(null);
  const set = (change: ProjectsSearch) =>
    void navigate({ to: "/projects", search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <div className="stack project-filters">
      <div className="row">
        <NativeSelect
          size="xs"
          aria-label="Order"
          value={search.sort ?? "used"}
          onChange={({ currentTarget: { value } }) => set({ sort: value === "used" ? undefined : value })}
          data={Object.entries(ORDERS).map(([value, [label]]) => ({ value, label }))}
        />
        <Button
          ref={toggle}
          size="xs"
          variant="default"
          aria-expanded={isOpen}
          onClick={() => setIsOpen(!isOpen)}
        >
          {count === 0 ? "Filters" : `Filters (${count})`}
        </Button>
        {count > 0 && (
          <Button
            size="xs"
            variant="subtle"
            onClick={() => {
              set({
                on: undefined,
                runner: undefined,
                by: undefined,
                repository: undefined,
                annotation: undefined,
              });
              // This button disappears together with the last filter.
              toggle.current?.focus();
            }}
          >
            Clear filters
          </Button>
        )}
      </div>
      {isOpen && <Fields search={search} onSet={set} />}
    </div>
  );
}

function Fields({
  search,
  onSet,
}: {
  readonly search: ProjectsSearch;
  readonly onSet: (change: ProjectsSearch) => void;
}) {
  const { on = "", runner = "", by, repository = "", annotation = "" } = search;
  const runners = useQuery(RunnerService.method.listRunners, { pagination: { pageSize: 100 } });
  const known = runners.data?.runners ?? [];
  return (
    <section className="stack" aria-label="Filters">
      <Problem error={runners.error} />
      <div className="filters">
        <NativeSelect
          label="Runs on"
          value={on}
          onChange={({ currentTarget: { value } }) => onSet({ on: value || undefined })}
          data={[
            { value: "", label: "Any kind of runner" },
            ...Object.entries(RUNNER_KINDS).map(([value, [label]]) => ({ value, label })),
          ]}
        />
        <NativeSelect
          label="Runner"
          value={runner}
          onChange={({ currentTarget: { value } }) => onSet({ runner: value || undefined })}
          data={[
            { value: "", label: "Any runner" },
            ...known.map(({ runnerId, name }) => ({ value: runnerId, label: name })),
            // The runner may be beyond the first hundred, or no longer exist.
            ...(runner === "" || known.some(({ runnerId }) => runnerId === runner)
              ? []
              : [{ value: runner, label: runner }]),
          ]}
        />
        <Typed
          label="Repository URL"
          placeholder="https://git.example.org/team/hello.git"
          maxLength={2048}
          value={repository}
          onSet={(value) => onSet({ repository: value || undefined })}
        />
        <Typed
          label="Annotation"
          placeholder="key=value"
          maxLength={641}
          value={annotation}
          onSet={(value) => onSet({ annotation: value || undefined })}
        />
      </div>
      <MadeBy by={by} onSet={(id) => onSet({ by: id })} />
    </section>
  );
}

function MadeBy({
  by,
  onSet,
}: {
  readonly by: string | undefined;
  readonly onSet: (id: string | undefined) => void;
}) {
  const { user } = usePerson();
  const button = useRef<HTMLButtonElement>(null);
  const isToggled = useRef(false);
  // The clicked button disappears with the change: move the focus to the button that replaces it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the other button is there once `by` has changed
  useEffect(() => {
    if (isToggled.current) button.current?.focus();
    isToggled.current = false;
  }, [by]);
  const set = (id: string | undefined) => {
    isToggled.current = true;
    onSet(id);
  };
  const { data } = useQuery(
    UserService.method.getUser,
    { userId: by ?? "" },
    { enabled: by !== undefined, retry: false, refetchInterval: false },
  );
  if (by !== undefined) {
    return (
      <p className="row">
        <span>
          Created by <strong>{data?.user?.name ?? by}</strong>
        </span>
        <Button ref={button} size="compact-xs" variant="default" onClick={() => set(undefined)}>
          Created by anyone
        </Button>
      </p>
    );
  }
  return (
    <div className="stack">
      <MemberPicker
        label="Created by"
        verb="Created by"
        chosen={user ? [user.id] : []}
        onChoose={({ id }) => set(id)}
      />
      <div className="row">
        <Button ref={button} size="compact-xs" variant="default" onClick={() => set(user?.id)}>
          Created by me
        </Button>
      </div>
    </div>
  );
}

/** A text field that applies its value on Enter, or when it loses the focus. */
function Typed({
  value,
  onSet,
  ...field
}: {
  readonly label: string;
  readonly placeholder: string;
  readonly maxLength: number;
  readonly value: string;
  readonly onSet: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  const [shown, setShown] = useState(value);
  // The address has another value; the field keeps the focus.
  if (shown !== value) {
    setShown(value);
    setText(value);
  }
  const send = () => {
    if (text.trim() !== value) onSet(text.trim());
  };
  return (
    <form
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        send();
      }}
    >
      <TextInput
        {...field}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onBlur={send}
      />
    </form>
  );
}
