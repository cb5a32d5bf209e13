import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Project, ProjectSchema } from "#gen/service/v1/project_pb.js";
import type { Caller } from "../../../src/domain/identity/caller.ts";
import type { PagePosition } from "../../../src/domain/page.ts";
import { fold } from "../../../src/domain/text/fold.ts";
import { insertProject } from "../../../src/store/project/project.ts";
import { findProjectPage } from "../../../src/store/project/project-list.ts";
import { SYSTEM } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";
import { ANY_PROJECT } from "./any-project.ts";

/** More than both engines test one by one or sort in memory before they take another way. */
const MANY = 3_500;
/** Every so many projects of the large organization have one of the names below. */
const RARE = 100;

/** What the small organization has, and the large one among others. */
const NAMES = [
  "Ä",
  "Äpfel & Öl",
  "ärger",
  "A\u0308",
  "a-b",
  "100%",
  "x_y",
  "it's",
  "c:\\x",
  "東京",
  "é",
  "q",
  "🐧 zoo",
  "\0",
];

let made: TestStore;
let small: Caller;
let large: Caller;
/** What the projects of an organization are searched by: their names and ids. */
const texts = new Map<string, { readonly id: string; readonly text: string }[]>();
beforeAll(async () => {
  made = openTestStore();
  small = await made.createOrganization("harbour");
  large = await made.createOrganization("island");
  await insert(small, NAMES);
  await insert(
    large,
    Array.from({ length: MANY }, (_, index) =>
      index % RARE === 0 ? (NAMES[(index / RARE) % NAMES.length] ?? "") : `plain ${index % 7}`,
    ),
  );
});
afterAll(() => made.close());

async function insert(caller: Caller, all: readonly string[]): Promise<void> {
  const known: { id: string; text: string }[] = [];
  texts.set(caller.organizationId, known);
  const project = (name: string): Project => {
    const id = made.newId();
    known.push({ id, text: fold(`${name}\n${id}`) });
    return create(ProjectSchema, { id, desiredPhase: 1, metadata: { name } });
  };
  for (let first = 0; first < all.length; first += 500) {
    await made.store.write(SYSTEM, "test", async (tx) => {
      for (const name of all.slice(first, first + 500)) await insertProject(tx, caller, project(name));
    });
  }
}

/** The projects that a search finds, page by page in the order of creation, and how many it counts. */
async function find(caller: Caller, text: string) {
  const found: string[] = [];
  let count: number | undefined;
  let after: PagePosition | undefined;
  do {
    const { projects, count: counted } = await findProjectPage(
      made.store,
      caller,
      {
        filter: { ...ANY_PROJECT, search: fold(text) },
        order: { field: "id", direction: "asc" },
        after,
        limit: 101,
        countLimit: after ? undefined : 2 * MANY,
      },
      () => new AbortController().signal,
    );
    count ??= counted;
    const page = projects.slice(0, 100);
    found.push(...page.map(({ position }) => position.id));
    after = projects.length > 100 ? page.at(-1)?.position : undefined;
  } while (after);
  return { found, count };
}

describe.each([
  ["a small organization next to one with thousands of projects", () => small],
  ["the large organization", () => large],
] as const)("a search in %s", (_, caller) => {
  test.each([
    ..."ÄäÖqQé東🐧\0&-%_'x ",
    ...'\\"*()?.^',
    ..."Äp|pF|a\u0308|x_|_y|0%|-b|'s|東京| &|zo|ZZ|\\_".split("|"),
    ..."äpf|ÄRGER|& ö|n 6".split("|"),
  ])("for %j finds what contains it, and nothing of the other", async (text) => {
    const all = texts.get(caller().organizationId) ?? [];
    const ids = all.filter((each) => each.text.includes(fold(text))).map(({ id }) => id);
    expect(await find(caller(), text)).toEqual({ found: ids, count: ids.length });
  });
});
