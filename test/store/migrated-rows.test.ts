import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, describe, expect, test } from "@jest/globals";
import type Database from "better-sqlite3";
import { WorkKind } from "#gen/runner/v1/work_pb.js";
import { EnvironmentPhase } from "#gen/service/v1/environment_pb.js";
import {
  ProjectPhase,
  ProjectPrebuildConfigurationSchema,
  ProjectSchema,
} from "#gen/service/v1/project_pb.js";
import { toBody } from "../../src/store/json.ts";
import { openConnection } from "../../src/store/sqlite/connection.ts";
import { MIGRATIONS, migrate } from "../../src/store/sqlite/migrate.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { trigramQuery } from "../../src/store/sqlite/search/trigrams.ts";
import { storedKey } from "../../src/store/workflow/workflow-trigger-event.ts";
import { stopAll, temporaryFolder } from "../harness/server.ts";

afterAll(stopAll);

/** Fills a file as a release left it, and brings it to this one. @param last name of that release's migration */
function migrated<T>(
  last: string,
  fill: (raw: Database.Database) => void,
  read: (raw: Database.Database) => T,
): T {
  const { raw, close } = openConnection(join(temporaryFolder(), DATABASE_FILE), "writer");
  try {
    migrate(raw, MIGRATIONS.slice(0, MIGRATIONS.findIndex(({ name }) => name === last) + 1));
    fill(raw);
    migrate(raw);
    return read(raw);
  } finally {
    close();
  }
}

describe("an account of an earlier release", () => {
  test("is found without regard to case after the migration", () => {
    const row = migrated(
      "0003-workflow",
      (raw) => {
        raw
          .prepare("insert into account (id, name, email, created_at, updated_at) values (?, ?, ?, 0, 0)")
          .run("a", "GRÜẞE Σ", "Ann@Example.org");
      },
      (raw) => raw.prepare("select name_folded, search_text from account").raw().get(),
    );
    expect(row).toEqual(["grüße σ", "grüße σ\nann@example.org"]);
  });

  test("has the address that the SCIM of an organization gave it, where that keeps it", () => {
    const rows = migrated(
      "0079-runner-state",
      (raw) => {
        const account = raw.prepare(
          "insert into account (id, name, email, created_at, updated_at) values (?, '', ?, 0, 0)",
        );
        const member =
          raw.prepare(`insert into member (id, organization_id, account_id, role, created_at, external_id)
          values (?, ?, ?, 2, 0, ?)`);
        raw.exec(`insert into organization (id, name, created_at, updated_at)
          values ('one', '', 0, 0), ('two', '', 0, 0)`);
        for (const id of ["kept", "plain", "both", "none"]) account.run(id, `${id}@example.org`);
        member.run("1", "one", "kept", null);
        member.run("2", "two", "kept", "x");
        member.run("3", "one", "plain", null);
        member.run("4", "two", "both", "y");
        member.run("5", "one", "both", "z");
      },
      (raw) => raw.prepare("select id, scim_organization_id from account order by id").raw().all(),
    );
    expect(rows).toEqual([
      ["both", "one"],
      ["kept", "two"],
      ["none", null],
      ["plain", null],
    ]);
  });
});

describe("the webhook secret of a workflow of an earlier release", () => {
  test("counts as given to the workflow's creator, the one before it too", () => {
    const creator = { id: "01990000-0000-7000-8000-000000000001", principal: "PRINCIPAL_USER" };
    const row = migrated(
      "0007-project-search-order",
      (raw) => {
        raw.pragma("foreign_keys = off");
        raw.exec("insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0)");
        const body = JSON.stringify({ id: "w", metadata: { creator } });
        const columns = raw
          .prepare<[], { name: string; type: string }>("select name, type from pragma_table_info('workflow')")
          .all();
        const known: Readonly<Record<string, string>> = { id: "w", organization_id: "o", body };
        raw
          .prepare(
            `insert into workflow (${columns.map(({ name }) => name)}) values (${columns.map(() => "?")})`,
          )
          .run(columns.map(({ name, type }) => known[name] ?? (/INT/i.test(type) ? 0 : "")));
        raw.exec("insert into workflow_secret (workflow_id, key_id, sealed) values ('w', 'k', x'00')");
      },
      (raw) => raw.prepare("select known_to, previous_known_to from workflow_secret").raw().get(),
    );
    expect((row as string[]).map((text) => JSON.parse(text))).toEqual([[creator], [creator]]);
  });
});

describe("a project of an earlier release", () => {
  type Configuration = MessageInitShape<typeof ProjectPrebuildConfigurationSchema>;
  const due = (configuration: Configuration | undefined, desiredPhase = ProjectPhase.ACTIVE) => {
    const project = create(ProjectSchema, { id: "p", desiredPhase });
    if (configuration) {
      project.prebuildConfiguration = create(ProjectPrebuildConfigurationSchema, configuration);
    }
    const insert = `insert into project
      (id, organization_id, creator_id, desired_phase, search_text, technical_description, used_by, body)
      values ('p', 'o', '', ?, '', '', '{}', ?)`;
    return migrated(
      "0002-record",
      (raw) => {
        raw.exec("insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0)");
        raw.prepare(insert).run(desiredPhase, toBody(ProjectSchema, project));
      },
      (raw) => raw.prepare("select * from prebuild_schedule").all(),
    );
  };
  const daily = {
    enabled: true,
    environmentClassIds: ["c"],
    trigger: { trigger: { case: "dailySchedule" as const, value: {} } },
  };

  test("gets the prebuilds that it asked for when there were none", () => {
    expect(due(daily)).toEqual([{ project_id: "p", organization_id: "o", next_at: 0 }]);
  });

  test.each<[string, Configuration | undefined]>([
    ["says nothing of them", undefined],
    ["disables them", { ...daily, enabled: false }],
    ["names no class for them", { ...daily, environmentClassIds: [] }],
    ["has no trigger for them", { enabled: true, environmentClassIds: ["c"] }],
  ])("gets none when it %s", (_, configuration) => {
    expect(due(configuration)).toEqual([]);
  });

  test("gets none when it is pending deletion", () => {
    expect(due(daily, ProjectPhase.DELETED)).toEqual([]);
  });
});

describe("the projects of an earlier release", () => {
  test("are in the index of texts, each organization's in a range of its own", () => {
    const found = migrated(
      "0005-agent",
      (raw) => {
        const insert = raw.prepare(`insert into project
          (id, organization_id, creator_id, desired_phase, search_text, technical_description, used_by, body)
          values (?, ?, '', 1, ?, '', '{}', '{}')`);
        for (const organization of ["o1", "o2", "o3"]) {
          raw
            .prepare("insert into organization (id, name, created_at, updated_at) values (?, '', 0, 0)")
            .run(organization);
        }
        for (const [id, organization] of [
          ["p1", "o1"],
          ["p2", "o3"],
          ["p3", "o1"],
        ]) {
          insert.run(id, organization, `a "ship" of ${organization}\n${id}`);
        }
      },
      (raw) => ({
        rows: raw.prepare("select id, search_row from project order by id").raw().all(),
        ranges: raw.prepare("select * from project_search_range order by number").raw().all(),
        ships: raw
          .prepare("select rowid from project_search where project_search match ?")
          .pluck()
          .all(trigramQuery('"ship')),
        threes: raw
          .prepare("select rowid from project_search where project_search match ?")
          .pluck()
          .all(trigramQuery("3")),
      }),
    );
    const range = 2 ** 30;
    const [first, second, third] = [range + 1, 2 * range + 1, range + 2];
    expect(found).toEqual({
      rows: [
        ["p1", first],
        ["p2", second],
        ["p3", third],
      ],
      ranges: [
        ["o1", 1, range + 2],
        ["o3", 2, 2 * range + 1],
      ],
      ships: [first, third, second],
      threes: [third, second],
    });
  });
});

describe("projects of an earlier release that begin from pages", () => {
  test("are found by the repositories of the pages", () => {
    const specs = (...urls: string[]) =>
      JSON.stringify({ initializer: { specs: urls.map((url) => ({ contextUrl: { url } })) } });
    const found = migrated(
      "0007-project-search-order",
      (raw) => {
        raw.exec("insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0)");
        raw.exec("insert into project_search_range values ('o', 1, 103)");
        const insert = raw.prepare(`insert into project
          (id, organization_id, creator_id, desired_phase, search_text, search_row, technical_description, used_by, body)
          values (?, 'o', '', 1, ?, ?, '', '{}', ?)`);
        const git = JSON.stringify({ initializer: { specs: [{ git: { remoteUri: "https://a/quay" } }] } });
        insert.run(
          "p1",
          "one\np1",
          101,
          specs("https://git.example.org/team/Quay/pull/7", "https://a/b/pier"),
        );
        insert.run("p2", "two\np2\nquay", 102, git);
        insert.run("p3", "three\np3", 103, specs("https://git.example.org/team/quay"));
      },
      (raw) => ({
        projects: raw.prepare("select id, search_text, search_row from project order by id").raw().all(),
        last: raw.prepare("select last_row from project_search_range").pluck().get(),
        quays: raw
          .prepare("select rowid from project_search where project_search match ?")
          .pluck()
          .all(trigramQuery("quay")),
      }),
    );
    expect(found.projects).toEqual([
      ["p1", expect.stringMatching(/^one\np1\n(quay\npier|pier\nquay)$/), 104],
      ["p2", "two\np2\nquay", 102],
      ["p3", "three\np3\nquay", 105],
    ]);
    expect(found.last).toBe(105);
    expect(found.quays).toEqual([104, 105]);
  });
});

describe("the remotes and the annotations of projects of an earlier release", () => {
  test("get their project's organization, whole and each once", () => {
    const found = migrated(
      "0005-agent",
      (raw) => {
        const insert = (id: string, organization: string, remotes: string[], pairs: [string, string][]) => {
          raw
            .prepare(`insert into project
              (id, organization_id, creator_id, desired_phase, search_text, technical_description, used_by, body)
              values (?, ?, '', 1, '', '', '{}', '{}')`)
            .run(id, organization);
          for (const remote of remotes)
            raw.prepare("insert into project_remote values (?, ?)").run(id, remote);
          for (const pair of pairs)
            raw.prepare("insert into project_annotation values (?, ?, ?)").run(id, ...pair);
        };
        for (const organization of ["o1", "o2"]) {
          raw
            .prepare("insert into organization (id, name, created_at, updated_at) values (?, '', 0, 0)")
            .run(organization);
        }
        insert("p1", "o2", ["r1", "r2"], [["a", "x"]]);
        insert(
          "p2",
          "o1",
          ["r1"],
          [
            ["a", "x"],
            ["b", "y"],
          ],
        );
        insert("p3", "o1", [], []);
      },
      (raw) => {
        const rows = (table: string) =>
          raw.prepare(`select * from ${table} order by project_id, 3`).raw().all();
        const before = { remotes: rows("project_remote"), annotations: rows("project_annotation") };
        raw.exec("delete from project where id = 'p2'");
        return { ...before, left: [...rows("project_remote"), ...rows("project_annotation")] };
      },
    );
    expect(found).toEqual({
      remotes: [
        ["p1", "o2", "r1"],
        ["p1", "o2", "r2"],
        ["p2", "o1", "r1"],
      ],
      annotations: [
        ["p1", "o2", "a", "x"],
        ["p2", "o1", "a", "x"],
        ["p2", "o1", "b", "y"],
      ],
      // As before, they go with their project.
      left: [
        ["p1", "o2", "r1"],
        ["p1", "o2", "r2"],
        ["p1", "o2", "a", "x"],
      ],
    });
  });
});

describe("an environment of an earlier release", () => {
  const queued = (phase: EnvironmentPhase, desiredPhase: EnvironmentPhase) =>
    migrated(
      "0002-record",
      (raw) => {
        raw.exec("insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0)");
        raw.exec("insert into account (id, name, email, created_at, updated_at) values ('a', '', '', 0, 0)");
        raw.exec(
          "insert into member (id, organization_id, account_id, role, created_at) values ('u', 'o', 'a', 1, 0)",
        );
        const insert = raw.prepare(`insert into environment
          (id, organization_id, creator_id, phase, desired_phase, created_at, counted, search_text, body)
          values (?, 'o', ?, ?, ?, 0, 0, '', '{}')`);
        for (const [id, creator] of [
          ["e1", "u"],
          ["e2", "u"],
          ["e3", "robot"],
        ]) {
          insert.run(id, creator, phase, desiredPhase);
        }
      },
      (raw) =>
        raw
          .prepare("select id, kind, subject_id, group_id, account_id, turn, fence from work order by id")
          .all(),
    );

  test("that waited for a runner is in the queue, in turn by who created it", () => {
    const work = { kind: WorkKind.ENVIRONMENT, fence: 0 };
    expect(queued(EnvironmentPhase.CREATING, EnvironmentPhase.RUNNING)).toEqual([
      { ...work, id: "e1", subject_id: "e1", group_id: "u", account_id: "a", turn: 1 },
      { ...work, id: "e2", subject_id: "e2", group_id: "u", account_id: "a", turn: 2 },
      { ...work, id: "e3", subject_id: "e3", group_id: "robot", account_id: null, turn: 1 },
    ]);
  });

  test("that was wanted stopped waits for nothing", () => {
    expect(queued(EnvironmentPhase.CREATING, EnvironmentPhase.STOPPED)).toEqual([]);
  });
});

describe("an event of an earlier release", () => {
  test("says whose its resource is, while that is there, and keeps its number", () => {
    const rows = migrated(
      "0007-project-search-order",
      (raw) => {
        raw.exec("pragma foreign_keys = off");
        const token = raw.prepare(
          `insert into token (id, organization_id, kind, subject_id, hash, key_id, read_only, expires_at, body)
           values (?, 'o', ?, ?, ?, 'k', 0, 0, '{}')`,
        );
        token.run("personal", "personal", "user", Buffer.from("1"));
        token.run("account", "service_account", "bot", Buffer.from("2"));
        token.run("runner", "runner", "runner", Buffer.from("3"));
        const event = raw.prepare("insert into event values ('o', ?, 0, 'created', ?, ?)");
        const events = [
          ["token", "personal"],
          ["token", "account"],
          ["token", "runner"],
          ["token", "gone"],
          ["environment", "place"],
          ["project", "work"],
        ];
        for (const [index, [type, id]] of events.entries()) event.run(index + 1, type, id);
      },
      (raw) => {
        expect(() => raw.exec("update event set at = 1")).toThrow("event rows are never changed");
        return raw
          .prepare(
            "select sequence, resource_type, creator_id, owner_id, environment_id from event order by 1",
          )
          .raw()
          .all();
      },
    );
    expect(rows).toEqual([
      [1, "personal_token", "user", "user", null],
      [2, "service_account_token", null, "bot", null],
      [3, "token", null, null, null],
      [4, "token", null, null, null],
      [5, "environment", null, null, "place"],
      [6, "project", null, null, null],
    ]);
  });
});

describe("an execution of an earlier release", () => {
  test("holds the first ten failures and warnings of its actions after the migration", () => {
    const error = (message: string) => ({
      code: "WORKFLOW_ERROR_CODE_UNSPECIFIED",
      message,
      meta: { host: "h" },
    });
    const bodyOf = (name: string, failures: object[], warnings: object[]) =>
      JSON.stringify({ metadata: { actionName: name }, status: { failures, warnings } });
    const rows = migrated(
      "0007-project-search-order",
      (raw) => {
        raw.exec(`insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0);
          insert into workflow (id, organization_id, creator_id, executor_id, executor_principal, disabled,
            deleting, sort_name, search_text, body) values ('w', 'o', '', '', 0, 0, 0, '', '', '{}')`);
        const execution = raw.prepare(`insert into workflow_execution (id, organization_id, workflow_id,
            trigger_kind, creator_id, executor_id, executor_principal, phase, desired_phase, expanded, failed,
            pending_count, running_count, failed_count, done_count, stopped_count, started_at, search_text,
            variables, body)
          values (?, 'o', 'w', 'manual', '', '', 0, 7, 7, 1, 1, 0, 0, 0, 0, 0, 0, '', '{}', '{}')`);
        const action =
          raw.prepare(`insert into workflow_action (id, organization_id, workflow_id, execution_id,
            is_report, phase, desired_phase, queued, failed, body) values (?, 'o', 'w', ?, 0, 7, 7, 0, 1, ?)`);
        for (const id of ["e1", "e2"]) execution.run(id);
        action.run("a1", "e1", bodyOf("r1", [error("one"), error("two")], [error("lost")]));
        for (let index = 10; index < 20; index += 1) {
          action.run(`b${index}`, "e1", bodyOf(`r${index}`, [error(`${index}`)], []));
        }
        action.run("c1", "e2", "{}");
      },
      (raw) =>
        raw
          .prepare("select action_failures, action_warnings from workflow_execution order by id")
          .raw()
          .all(),
    ) as [string, string][];
    const [[failures = "", warnings = ""] = [], without] = rows;
    const entries = JSON.parse(failures).map(({ message, meta }: { message: string; meta: object }) => [
      message,
      meta,
    ]);
    const meta = (id: string, name: string) => ({
      host: "h",
      workflow_execution_action_id: id,
      action_name: name,
    });
    expect(entries.slice(0, 3)).toEqual([
      ["one", meta("a1", "r1")],
      ["two", meta("a1", "r1")],
      ["10", meta("b10", "r10")],
    ]);
    expect([entries.length, JSON.parse(warnings).length]).toEqual([10, 1]);
    expect(without).toEqual(["[]", "[]"]);
  });
});

test("the plan of an execution of an earlier release moves to a row of its own, which keeps the limits", () => {
  const text = (command: string) => ({ limits: { maxParallel: 2 }, steps: [{ task: { command } }] });
  const spec = {
    session: "s",
    desiredPhase: "WORKFLOW_EXECUTION_PHASE_COMPLETED",
    trigger: { manual: {} },
    action: text('echo "é"\n'),
    report: text("true"),
  };
  const bodies = [
    { id: "e1", spec, status: { pendingActionCount: 0 } },
    { id: "e2", spec: { session: "s", trigger: { manual: {} } } },
    { id: "e3" },
  ];
  const rows = migrated(
    "0013-context-url-search",
    (raw) => {
      raw.exec(`insert into organization (id, name, created_at, updated_at) values ('o', '', 0, 0);
        insert into workflow (id, organization_id, creator_id, executor_id, executor_principal, disabled,
          deleting, sort_name, search_text, body) values ('w', 'o', '', '', 0, 0, 0, '', '', '{}')`);
      const insert = raw.prepare(`insert into workflow_execution (id, organization_id, workflow_id,
          trigger_kind, creator_id, executor_id, executor_principal, phase, desired_phase, expanded, failed,
          pending_count, running_count, failed_count, done_count, stopped_count, started_at, search_text,
          variables, body)
        values (?, 'o', 'w', 'manual', '', '', 0, 7, 7, 1, 1, 0, 0, 0, 0, 0, 0, '', '{}', ?)`);
      for (const body of bodies) insert.run(body.id, JSON.stringify(body));
    },
    (raw) =>
      raw
        .prepare(
          `select workflow_execution.body, workflow_plan.body from workflow_execution
             left join workflow_plan on execution_id = id order by id`,
        )
        .raw()
        .all(),
  ) as [string, string | null][];
  const stored = rows.map((row) => row.map((body) => (body === null ? null : JSON.parse(body))));
  const { trigger, action, report } = spec;
  const blank = { session: "", desiredPhase: "WORKFLOW_EXECUTION_PHASE_UNSPECIFIED" };
  expect(stored).toEqual([
    [
      {
        id: "e1",
        metadata: {},
        spec: { action: { ...action, steps: [] }, report: { ...report, steps: [] } },
      },
      { ...blank, trigger, action, report },
    ],
    [
      { id: "e2", metadata: {}, spec: {} },
      { ...blank, trigger: { manual: {} } },
    ],
    [{ id: "e3", metadata: {}, spec: {} }, null],
  ]);
});

describe("the entries of a workflow's ledger with long keys of an earlier release", () => {
  test("are found under the keys' hashes, but for one whose event came again since", () => {
    const [long, again, short] = ["l".repeat(20_000), "ü".repeat(600), "s".repeat(1_024)];
    const keys = migrated(
      "0026-agent-output-fold",
      (raw) => {
        raw.pragma("foreign_keys = off");
        const insert = raw.prepare(
          "insert into workflow_trigger_event values (?, 'o', ?, 0, 0, 0, ?, null, '{}', '{}')",
        );
        insert.run("1", "w", long);
        insert.run("2", "other", long);
        insert.run("3", "w", again);
        insert.run("4", "w", storedKey(again));
        insert.run("5", "w", short);
        insert.run("6", "w", null);
      },
      (raw) => raw.prepare("select dedupe_key from workflow_trigger_event order by id").pluck().all(),
    );
    expect(keys).toEqual([storedKey(long), storedKey(long), null, storedKey(again), short, null]);
    expect(storedKey(long)).toMatch(/^sha256:[0-9a-f]{64}$/);
  });
});
