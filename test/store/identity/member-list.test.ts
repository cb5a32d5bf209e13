import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { OrganizationRole } from "#gen/service/v1/organization_pb.js";
import { UserStatus } from "#gen/service/v1/user_pb.js";
import type { MemberOrder } from "../../../src/domain/identity/member.ts";
import { fold } from "../../../src/domain/text/fold.ts";
import { updateAccountBlock } from "../../../src/store/access/account-block.ts";
import { insertAccount } from "../../../src/store/identity/account.ts";
import { findMember, insertMember, updateMember } from "../../../src/store/identity/member.ts";
import {
  countMatchingMembers,
  findMemberPage,
  type MemberFilter,
} from "../../../src/store/identity/member-list.ts";
import { OPERATOR, type Scope } from "../../../src/store/store.ts";
import { openTestStore, type TestStore } from "../../harness/test-store.ts";

let testStore: TestStore;
let harbour: Scope;
let island: Scope;
beforeEach(async () => {
  testStore = openTestStore();
  [harbour, island] = [
    await testStore.createOrganization("harbour"),
    await testStore.createOrganization("island"),
  ];
});
afterEach(() => testStore.close());

const { ACTIVE, SUSPENDED, LEFT } = UserStatus;
const { ADMIN, MEMBER } = OrganizationRole;
const ANYBODY: MemberFilter = { statuses: [ACTIVE, SUSPENDED, LEFT], roles: [], userIds: [], search: "" };
/** Who is there from the start. */
const FOUNDER = "Administrator of harbour";
const JOINING: MemberOrder = { field: "joining", direction: "asc" };

/** Makes somebody a member of both organizations; the id in the first. */
function join(name: string): Promise<string> {
  return testStore.store.write(OPERATOR, "test", async (tx) => {
    const [account_id, id] = [tx.newId(), tx.newId()];
    await insertAccount(tx, { id: account_id, name, email: `${name.toLowerCase()}-${id}@example.org` });
    await insertMember(tx, harbour, { id, account_id, role: MEMBER });
    await insertMember(tx, island, { id: tx.newId(), account_id, role: MEMBER });
    return id;
  });
}

async function leave(userId: string): Promise<void> {
  await testStore.store.write(OPERATOR, "test", async (tx) => {
    const member = await findMember(tx.db, harbour, userId);
    if (member) await updateMember(tx, harbour, member, { ...member, left_at: tx.now });
  });
}

async function block(userId: string): Promise<void> {
  const member = await findMember(testStore.store.reader, harbour, userId);
  await testStore.store.write(OPERATOR, "test", async (tx) => {
    const account = { id: member?.account_id ?? "", blocked_at: null };
    await updateAccountBlock(tx, account, { blockedAt: tx.now, organizationIds: [] });
  });
}

/** Up to `limit` members, and the place of the last. */
async function list(...args: Parameters<typeof findMemberPage>) {
  const rows = await findMemberPage(...args);
  const members = await Promise.all(rows.map((row) => row.read()));
  return { members: members.flatMap((member) => member ?? []), last: rows.at(-1)?.position };
}

const names = async (filter: Partial<MemberFilter>, order = JOINING) =>
  (
    await list(testStore.store.reader, harbour, { ...ANYBODY, ...filter }, order, undefined, 100)
  ).members.flatMap(({ name }) => (name === FOUNDER ? [] : [name]));

/** Every name, taken two at a time. */
async function inPages(order: MemberOrder, meanwhile = async () => {}): Promise<string[]> {
  const seen: string[] = [];
  let after: Awaited<ReturnType<typeof findMemberPage>>[number]["position"] | undefined;
  for (;;) {
    const page = await list(testStore.store.reader, harbour, ANYBODY, order, after, 2);
    if (page.members.length === 0) return seen;
    seen.push(...page.members.map(({ name }) => name));
    after = page.last;
    await meanwhile();
  }
}

describe("members", () => {
  test("are found by status, and who left while blocked is one who left", async () => {
    const [, blocked, gone, both] = [
      await join("Here"),
      await join("Blocked"),
      await join("Gone"),
      await join("Both"),
    ];
    for (const id of [blocked, both]) await block(id);
    for (const id of [gone, both]) await leave(id);
    expect(await names({ statuses: [ACTIVE] })).toEqual(["Here"]);
    expect(await names({ statuses: [SUSPENDED] })).toEqual(["Blocked"]);
    expect(await names({ statuses: [LEFT, ACTIVE] })).toEqual(["Here", "Gone", "Both"]);
    expect(await names({ statuses: [UserStatus.UNSPECIFIED] })).toEqual([]);
  });

  test("are found by role, id and part of a name, address or id, all of which must hold", async () => {
    const [ann, bob] = [await join("Ann"), await join("BÖB")];
    const search = (text: string) => ({ search: fold(text) });
    expect(await names({ userIds: [bob] })).toEqual(["BÖB"]);
    expect(await names(search("böb"))).toEqual(["BÖB"]);
    expect(await names(search(`N-${ann.toUpperCase()}@EX`))).toEqual(["Ann"]);
    expect(await names(search(bob.slice(20).toUpperCase()))).toEqual(["BÖB"]);
    expect(await names({ userIds: [ann], ...search("böb") })).toEqual([]);
    expect(await names({ roles: [MEMBER], userIds: [ann, bob] })).toEqual(["Ann", "BÖB"]);
    expect(await names({ roles: [ADMIN] })).toEqual([]);
    // No value holds a line break, though the text in which they are searched does.
    expect(await names(search("ann\nann"))).toEqual([]);
  });

  test("come by joining or by name without regard to case, and exactly mirrored", async () => {
    for (const name of ["ann", "Cid", "bea", "ANN", "Ann"]) await join(name);
    expect(await names({})).toEqual(["ann", "Cid", "bea", "ANN", "Ann"]);
    const byName = await names({}, { field: "name", direction: "asc" });
    expect(byName).toEqual(["ann", "ANN", "Ann", "bea", "Cid"]);
    expect(await names({}, { field: "name", direction: "desc" })).toEqual(byName.toReversed());
  });

  test.each<MemberOrder>([
    { field: "joining", direction: "asc" },
    { field: "joining", direction: "desc" },
    { field: "name", direction: "asc" },
    { field: "name", direction: "desc" },
  ])("come a page at a time, each once: %j", async (order) => {
    // All join in the same millisecond, and names repeat.
    for (const name of ["ann", "Cid", "bea", "ANN", "Ann", "Dan"]) await join(name);
    const rest = (list: string[]) => list.filter((name) => name !== FOUNDER);
    expect(rest(await inPages(order))).toEqual(await names({}, order));
  });

  test("keep their place when the last of a page leaves, and who comes meanwhile is not skipped to", async () => {
    const ids = new Map<string, string>();
    for (const name of ["ann", "bea", "cid", "dan"]) ids.set(name, await join(name));
    let pages = 0;
    const seen = await inPages({ field: "name", direction: "asc" }, async () => {
      pages += 1;
      if (pages === 1) await leave(ids.get("ann") ?? "");
      if (pages === 2) await join("abe");
    });
    expect(seen).toEqual([FOUNDER, "ann", "bea", "cid", "dan"]);
  });

  test("are counted no further than asked, and none of another organization", async () => {
    for (const name of ["ann", "bea"]) await join(name);
    const count = (limit: number) => countMatchingMembers(testStore.store.reader, harbour, ANYBODY, limit);
    expect([await count(2), await count(3), await count(4)]).toEqual([2, 3, 3]);
    const roles = { ...ANYBODY, roles: [MEMBER] };
    const { members: here } = await list(testStore.store.reader, harbour, roles, JOINING, undefined, 9);
    const { members: there } = await list(testStore.store.reader, island, roles, JOINING, undefined, 9);
    const ids = new Set([...here, ...there].map(({ userId }) => userId));
    expect([here.length, there.length, ids.size]).toEqual([2, 2, 4]);
  });
});
