import { withRawData } from "./raw-data.ts";

/** A trigger that fails statements. */
interface Refusal {
  readonly name: string;
  /** Such as `update of expires_at on work`. */
  readonly on: string;
  /** Of the row as it was; default every row. */
  readonly when?: string;
  readonly message: string;
}

/** Makes the database of a folder fail statements from now on. */
export function refuse(dataDir: string, { name, on, when = "1 = 1", message }: Refusal): Promise<void> {
  return withRawData(dataDir, (raw) =>
    raw.run(
      raw.isPostgres
        ? `create function ${name}() returns trigger language plpgsql as
            $$ begin raise exception '${message}' using errcode = 'raise_exception'; end $$;
          create trigger ${name} before ${on} for each row when (${when}) execute function ${name}()`
        : `create trigger ${name} before ${on} when ${when} begin select raise(abort, '${message}'); end`,
    ),
  );
}

/** Lets statements through again that {@link refuse} has failed. */
export function stopRefusing(dataDir: string, { name, on }: Pick<Refusal, "name" | "on">): Promise<void> {
  const table = on.split(" ").at(-1);
  return withRawData(dataDir, (raw) =>
    raw.run(raw.isPostgres ? `drop trigger ${name} on ${table}` : `drop trigger ${name}`),
  );
}
