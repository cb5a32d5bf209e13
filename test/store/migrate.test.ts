import { copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "@jest/globals";
import type Database from "better-sqlite3";
import { openConnection } from "../../src/store/sqlite/connection.ts";
import { MIGRATIONS, type Migration, migrate } from "../../src/store/sqlite/migrate.ts";
import { DATABASE_FILE, openStore } from "../../src/store/sqlite/open.ts";
import { endNodes, startNode } from "../harness/node-process.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";
import { AUDIT } from "./record/audit-seal.ts";

afterAll(async () => {
  await endNodes();
  await stopAll();
});

const newFile = () => join(temporaryFolder(), DATABASE_FILE);

/** Every table, index and trigger as the file states it. */
function schemaOf(raw: Database.Database): string {
  const rows = raw.prepare<[], { sql: string }>(
    "select sql from sqlite_schema where sql is not null order by name",
  );
  return rows
    .all()
    .map(({ sql }) => `${sql};\n`)
    .join("\n");
}

/** Opens a file, does something and closes it. */
function within<T>(file: string, run: (raw: Database.Database) => T): T {
  const { raw, close } = openConnection(file, "writer");
  try {
    return run(raw);
  } finally {
    close();
  }
}

const schemaIn = (file: string) => within(file, schemaOf);
const factsIn = (file: string) =>
  within(file, (raw) => raw.prepare("select name from fact order by name").pluck().all());
const addFact = (file: string, name: string) =>
  within(file, (raw) => raw.prepare("insert into fact (name, value) values (?, '')").run(name));

let madeWithData: string | undefined;
/** A file as this release makes it, with a row in it: a copy of one that was made once. */
function fileWithData(): string {
  if (madeWithData === undefined) {
    madeWithData = newFile();
    within(madeWithData, (raw) => migrate(raw));
    addFact(madeWithData, "first");
  }
  const file = newFile();
  copyFileSync(madeWithData, file);
  return file;
}

const SECOND: Migration = {
  name: "9001-second",
  statements:
    "alter table fact add column note text; insert into fact (name, value, note) values ('second', '', 'n');",
};
const THIRD: Migration = {
  name: "9002-third",
  statements: "create table third (id text primary key) strict;",
};
const FAILING: Migration = {
  name: SECOND.name,
  statements: `${SECOND.statements} insert into absent values (1);`,
};

describe("the schema", () => {
  const page = join(import.meta.dirname, "schema.sql");

  test("of a new file is the one that is pinned", () => {
    const file = newFile();
    within(file, (raw) => migrate(raw));
    const schema = schemaIn(file);
    if (process.env.WRITE_SCHEMA) writeFileSync(page, schema);
    try {
      expect(schema).toBe(readFileSync(page, "utf8"));
    } catch (error) {
      throw new Error(
        `test/store/schema.sql pins another schema. A released migration is never edited; when a new one is meant, run
  WRITE_SCHEMA=1 npm test -- test/store/migrate.test.ts
and read what changed in that file.\n\n${(error as Error).message}`,
      );
    }
  });

  test("of a new file is that of a file which any earlier release made and this one migrated", () => {
    const fresh = newFile();
    within(fresh, (raw) => migrate(raw));
    const schema = schemaIn(fresh);
    // Each release's file goes on from the one before: to make all of them from nothing would take twice as long.
    const released = newFile();
    for (let count = 1; count <= MIGRATIONS.length; count++) {
      within(released, (raw) => migrate(raw, MIGRATIONS.slice(0, count)));
      const file = newFile();
      copyFileSync(released, file);
      expect(within(file, (raw) => migrate(raw))).toHaveLength(MIGRATIONS.length - count);
      expect(schemaIn(file)).toBe(schema);
    }
  });

  test("is made of migrations whose names ascend and differ", () => {
    const names = MIGRATIONS.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].sort());
    for (const name of names) expect(name).toMatch(/^\d{4}-[a-z-]+$/);
  });
});

describe("a migration", () => {
  test("runs once, in order, and its time is kept", () => {
    const file = newFile();
    expect(within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]))).toEqual([
      ...MIGRATIONS.map(({ name }) => name),
      SECOND.name,
    ]);
    expect(within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND, THIRD]))).toEqual([THIRD.name]);
    expect(within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND, THIRD]))).toEqual([]);
    expect(factsIn(file)).toEqual(["second"]);
  });

  test("is announced when it begins on data of an earlier release, and not for a new file", () => {
    const begun: string[] = [];
    const begins = (name: string) => void begun.push(name);
    const file = newFile();
    within(file, (raw) => migrate(raw, MIGRATIONS, { begins }));
    expect(begun).toEqual([]);
    addFact(file, "first");
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND, THIRD], { begins }));
    expect(begun).toEqual([SECOND.name, THIRD.name]);
  });

  test("that fails leaves the file as it was, and a corrected one can run later", () => {
    const file = fileWithData();
    const before = schemaIn(file);
    expect(() => within(file, (raw) => migrate(raw, [...MIGRATIONS, FAILING, THIRD]))).toThrow(
      "no such table: absent",
    );
    expect(schemaIn(file)).toBe(before);
    expect(factsIn(file)).toEqual(["first"]);
    expect(within(file, (raw) => migrate(raw))).toEqual([]);
    expect(within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]))).toEqual([SECOND.name]);
    expect(factsIn(file)).toEqual(["first", "second"]);
  });

  test("that fails keeps the ones before it", () => {
    const file = fileWithData();
    const failing = { ...FAILING, name: "9003-failing" };
    expect(() => within(file, (raw) => migrate(raw, [...MIGRATIONS, THIRD, failing]))).toThrow("absent");
    expect(within(file, (raw) => migrate(raw, [...MIGRATIONS, THIRD]))).toEqual([]);
  });

  test("that fails tells its own failure even when the engine has ended the transaction with it", () => {
    const file = fileWithData();
    const ending = {
      name: SECOND.name,
      statements: `
        create trigger fact_ends before insert on fact begin select raise(rollback, 'the engine gave up'); end;
        insert into fact (name, value) values ('x', '');`,
    };
    expect(() => within(file, (raw) => migrate(raw, [...MIGRATIONS, ending]))).toThrow("the engine gave up");
    expect(factsIn(file)).toEqual(["first"]);
  });
});

describe("a migration whose process is killed", () => {
  /** The last one that changes tables: others rewrite rows in portions (workflow/migrated-progress.test.ts). */
  const last = MIGRATIONS.findLastIndex((migration) => "statements" in migration);

  /** Migrates the file that it is given and is suspended before the end of the last migration. */
  const MIGRATOR = `
    import { writeSync } from "node:fs";
    import { openConnection } from "./src/store/sqlite/connection.ts";
    import { MIGRATIONS, migrate } from "./src/store/sqlite/migrate.ts";
    const { raw } = openConnection(await nextLine(), "writer");
    raw.function("stand_still", () => {
      writeSync(1, "true\\n");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });
    const last = MIGRATIONS[${last}];
    migrate(raw, [...MIGRATIONS.slice(0, ${last}), { ...last, statements: last.statements + "select stand_still();" }]);
  `;

  test("leaves the file as the migration before it did, and the next start does it", async () => {
    const file = newFile();
    within(file, (raw) => migrate(raw, MIGRATIONS.slice(0, last)));
    addFact(file, "first");
    const schema = schemaIn(file);
    const migrator = startNode(MIGRATOR);
    migrator.send(file);
    expect(await migrator.next()).toBe(true);
    await migrator.kill();
    expect(schemaIn(file)).toBe(schema);
    expect(within(file, (raw) => migrate(raw))).toEqual(MIGRATIONS.slice(last).map(({ name }) => name));
    expect(factsIn(file)).toEqual(["first"]);
  });
});

describe("a file of a newer release", () => {
  const newer = () => {
    const file = fileWithData();
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]));
    return file;
  };

  test("is refused by the name of what is unknown, and left as it is", () => {
    const file = newer();
    const before = schemaIn(file);
    expect(() => within(file, (raw) => migrate(raw))).toThrow(SECOND.name);
    expect(() => within(file, (raw) => migrate(raw, [...MIGRATIONS, THIRD]))).toThrow(SECOND.name);
    expect(schemaIn(file)).toBe(before);
    expect(factsIn(file)).toEqual(["first", "second"]);
    expect(existsSync(`${file}.before-${THIRD.name}`)).toBe(false);
  });

  test("is refused by the store, which then does not keep it open", async () => {
    const file = newer();
    const dataDir = join(file, "..");
    expect(() => openStore({ dataDir, now: () => 0, newId: () => "", audit: AUDIT })).toThrow(
      "start the release that wrote it",
    );
    // The last connection that closes takes the log with it.
    expect(readdirSync(dataDir).filter((name) => name.includes("-wal"))).toEqual([]);
  });
});

describe("the copy before a migration", () => {
  const copyOf = (file: string) => `${file}.before-${SECOND.name}`;

  test("holds what the file held before the first migration that ran, with its name", () => {
    const file = fileWithData();
    const schema = schemaIn(file);
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND, THIRD]));
    expect(readdirSync(join(file, "..")).sort()).toEqual([
      DATABASE_FILE,
      `${DATABASE_FILE}.before-${SECOND.name}`,
    ]);
    expect(factsIn(copyOf(file))).toEqual(["first"]);
    expect(schemaIn(copyOf(file))).toBe(schema);
  });

  test("can be read by its owner only, as the file itself", () => {
    const file = fileWithData();
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]));
    expect([file, copyOf(file)].map((each) => statSync(each).mode & 0o777)).toEqual([0o600, 0o600]);
  });

  test("also holds what is not yet in the file itself but in its log", () => {
    const file = fileWithData();
    const { raw, close } = openConnection(file, "writer");
    raw.prepare("insert into fact (name, value) values ('in the log', '')").run();
    migrate(raw, [...MIGRATIONS, SECOND]);
    close();
    expect(factsIn(copyOf(file))).toEqual(["first", "in the log"]);
  });

  test("is not made of a new file, however many migrations it takes", () => {
    const file = newFile();
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND, THIRD]));
    expect(readdirSync(join(file, ".."))).toEqual([DATABASE_FILE]);
  });

  test("is not made when nothing is to be done", () => {
    const file = fileWithData();
    within(file, (raw) => migrate(raw));
    expect(readdirSync(join(file, ".."))).toEqual([DATABASE_FILE]);
  });

  test("of an attempt that failed is replaced by the next attempt, as rows have come since", () => {
    const file = fileWithData();
    expect(() => within(file, (raw) => migrate(raw, [...MIGRATIONS, FAILING]))).toThrow("absent");
    addFact(file, "later");
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]));
    expect(factsIn(copyOf(file))).toEqual(["first", "later"]);
  });

  test("does not mind what a killed attempt left half done", () => {
    const file = fileWithData();
    writeFileSync(`${copyOf(file)}.draft`, "half");
    within(file, (raw) => migrate(raw, [...MIGRATIONS, SECOND]));
    expect(factsIn(copyOf(file))).toEqual(["first"]);
    expect(existsSync(`${copyOf(file)}.draft`)).toBe(false);
  });
});

describe("processes that open one file at the same instant", () => {
  /** Opens the file that it is given, at the instant that it is given, and says what ran or what failed. */
  const OPENER = `
    import { openConnection } from "./src/store/sqlite/connection.ts";
    import { MIGRATIONS, migrate } from "./src/store/sqlite/migrate.ts";
    print("ready");
    for (let line = await nextLine(); line; line = await nextLine()) {
      const { file, at, migrations } = JSON.parse(line);
      while (performance.timeOrigin + performance.now() < at);
      try {
        const { raw, close } = openConnection(file, "writer");
        const ran = migrate(raw, [...MIGRATIONS, ...migrations]);
        close();
        print(ran);
      } catch (error) {
        print(error.message);
      }
    }
  `;

  async function openAtOnce(files: () => string, migrations: readonly Migration[], rounds: number) {
    const openers = Array.from({ length: 3 }, () => startNode(OPENER));
    await Promise.all(openers.map((opener) => opener.next()));
    const outcomes: { file: string; ran: unknown[] }[] = [];
    for (let round = 0; round < rounds; round++) {
      const file = files();
      const at = performance.timeOrigin + performance.now() + 2;
      for (const opener of openers) opener.send(JSON.stringify({ file, at, migrations }));
      const ran = await Promise.all(openers.map((opener) => opener.next()));
      outcomes.push({ file, ran });
    }
    return outcomes;
  }

  test("all succeed on a new file, and each migration runs in one of them", async () => {
    for (const { file, ran } of await openAtOnce(newFile, [], 40)) {
      expect(ran.flat().sort()).toEqual(MIGRATIONS.map(({ name }) => name));
      // Two that close at the same instant may both leave the log to the other; what must not be there is a copy.
      const left = readdirSync(join(file, "..")).filter((name) => !/-(wal|shm)$/.test(name));
      expect(left).toEqual([DATABASE_FILE]);
    }
  });

  test("all succeed on a file with data, which is copied whole and migrated once", async () => {
    for (const { file, ran } of await openAtOnce(fileWithData, [SECOND], 20)) {
      expect(ran.flat()).toEqual([SECOND.name]);
      expect(factsIn(file)).toEqual(["first", "second"]);
      expect(factsIn(`${file}.before-${SECOND.name}`)).toEqual(["first"]);
    }
  });
});
