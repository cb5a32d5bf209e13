// test/data/repositories.txt holds 1,000 remotes of public repositories, one a line: well-known open-source
// projects composed with many kinds of hosts and with every shape in which a remote is written. Nothing is cloned.
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { type Answer, post, reasonOf } from "../harness/call.ts";
import { addOrganization } from "../harness/organization.ts";
import { projectChanges } from "../harness/project-changes.ts";
import { matching, repositoryNameOf } from "../harness/project-model.ts";
import { comparePages } from "../harness/project-pages.ts";
import { randomQuery } from "../harness/project-queries.ts";
import { printedRandom } from "../harness/random.ts";
import {
  createRequests,
  derivedName,
  type ImportedOrganization,
  importRepositories,
  repositoryUrls,
} from "../harness/repository-import.ts";
import { type HostedServer, startHostedServer, stopAll } from "../harness/server.ts";
import { until } from "../harness/until.ts";

/** As the server is configured by default. */
const COUNT_LIMIT = 1_000;
const QUERIES = 400;
const PAGE_SIZES = [undefined, 0, 1, 7, 25, 100];
/** Questions with more pages than this are asked in larger pages. */
const PAGES_AT_MOST = 150;

const random = printedRandom("import");
const urls = repositoryUrls();
let server: HostedServer;
let own: ImportedOrganization;
let other: ImportedOrganization;
const answers: Answer[] = [];
const requests = createRequests(urls, random.fork("requests"));

beforeAll(async () => {
  server = await startHostedServer({ args: ["--popularity-interval", "1"] });
  const first = await importRepositories(server, server.token, requests);
  own = first.organization;
  answers.push(...first.answers);
  const neighbour = await addOrganization(server, "neighbour");
  const part = createRequests(urls.slice(0, 150), random.fork("neighbour"));
  other = (await importRepositories(server, neighbour.token, part)).organization;
  for (const organization of [own, other]) await enliven(organization);
});
afterAll(stopAll);

/** Environment classes, environments, and projects on their way out, so that projects differ in more than their remotes. */
async function enliven(organization: ImportedOrganization): Promise<void> {
  const changes = projectChanges(server, organization);
  const ids = organization.projects.map(({ id }) => id);
  const choice = random.fork("enliven");
  for (const id of choice.some(ids, ids.length / 6)) await changes.setClasses(id, choice);
  const used = choice.some(ids, 60);
  // Each number of uses once, apart from a single one: equal sums of several would hang on rounding.
  for (const [index, id] of used.slice(0, 11).entries()) {
    for (let uses = 0; uses < index + 2; uses++) await changes.use(id);
  }
  const single = used.slice(11);
  for (let start = 0; start < single.length; start += 8) {
    await Promise.all(single.slice(start, start + 8).map(changes.use));
  }
  // A use that is over is a use all the same.
  const [first = ""] = used;
  await changes.removeEnvironment(await changes.use(first));
  for (const id of used.slice(-5)) await changes.markDeleted(id);
}

const list = (body: object, token = own.token) => post(server, "ProjectService/ListProjects", body, token);
const idsOf = ({ body }: Answer): string[] => body.projects.map(({ id }: { id: string }) => id);

describe("a thousand repositories", () => {
  test("are a thousand different ones, on many hosts", () => {
    const hosts = urls.map((url) =>
      /^(?:[a-z+]+:\/\/)?(?:[^@/]*@)?(\[[^\]]*\]|[^/:]+)/i.exec(url)?.[1]?.toLowerCase(),
    );
    expect([urls.length, new Set(urls).size]).toEqual([1_000, 1_000]);
    expect(new Set(hosts).size).toBeGreaterThan(75);
  });

  test("are imported in batches of a hundred, in order and none left out", () => {
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(answers.flatMap(({ body }) => body.failedProjects)).toEqual([]);
    const created = answers.flatMap(({ body }) => body.createdProjects);
    expect(created.map(({ initializer }) => initializer.specs[0].git.remoteUri)).toEqual(urls);
    const ids = created.map(({ id }) => id);
    expect(ids.toSorted()).toEqual(ids);
  });

  test("are named after their repositories unless they were given names, and keep what they were given", () => {
    const created = answers.flatMap(({ body }) => body.createdProjects);
    for (const [index, request] of requests.entries()) {
      const { name = derivedName(request), technicalDescription, annotations } = request;
      expect(created[index]).toMatchObject({ metadata: { name }, technicalDescription });
      expect(created[index].metadata.annotations).toEqual(annotations);
    }
  });

  test("come to the order of their use", async () => {
    const compared = async (): Promise<unknown> => {
      try {
        await comparePages(server, own, {}, 100, COUNT_LIMIT);
        await comparePages(server, other, {}, 100, COUNT_LIMIT);
        return "alike";
      } catch (error) {
        return String(error);
      }
    };
    await until(compared, (answer) => answer === "alike");
  });

  test(`answer ${QUERIES} random questions exactly as the model does, page by page`, async () => {
    const matched: number[] = [];
    for (let index = 0; index < QUERIES; index++) {
      const choice = random.fork(`query ${index}`);
      const [asked, neighbour] = choice.chance(0.8) ? [own, other] : [other, own];
      const query = randomQuery(choice, asked, neighbour);
      const found = matching(asked.projects, query.filter).length;
      const size = choice.pick(PAGE_SIZES.filter((each) => found / (each || 25) <= PAGES_AT_MOST));
      matched.push(await comparePages(server, asked, query, size, COUNT_LIMIT));
    }
    expect(matched.filter((number) => number > 0).length).toBeGreaterThan(QUERIES / 3);
    expect(matched.filter((number) => number === 0).length).toBeGreaterThan(QUERIES / 20);
  });
});

describe("a search", () => {
  const found = async (search: string) =>
    idsOf(await list({ filter: { search }, pagination: { pageSize: 100 } }));

  test.each([
    "%",
    "_",
    "\\",
    "'",
    '"',
    "\n",
    "a\nb",
    "\t",
    "\u0001\u001f",
    "\u007f",
    "\u0085",
    "\u2028",
    "\u0000",
  ])("takes %j literally", async (search) => {
    await comparePages(server, own, { filter: { search } }, 100, COUNT_LIMIT);
  });

  test.each([
    ["ΒΙΒΛΙΟΘΉΚΗ", "Βιβλιοθήκη"],
    ["σίσυφοσ", "ΣΊΣΥΦΟΣ"],
    ["ЖУРНАЛ", "журнал"],
    ["STRAẞE", "straße"],
    ["λεξ", "ΛΕΞ"],
  ])("takes %s and %s for the same", async (one, same) => {
    expect(await found(one)).toEqual(await found(same));
    await comparePages(server, own, { filter: { search: one } }, 100, COUNT_LIMIT);
  });

  test("keeps ß from ss and İ from i, as simple folding does", async () => {
    const sharp = await found("stra\u00dfe");
    expect(sharp.length).toBeGreaterThan(0);
    expect(await found("strasse")).not.toEqual(expect.arrayContaining(sharp));
    const dotted = await found("\u0130stanbul");
    expect(dotted.length).toBeGreaterThan(0);
    expect(await found("istanbul")).toEqual([]);
  });

  test("finds a repository by its name as it is written, escapes and all, and by the end of a very long one", async () => {
    const [project] = own.projects.filter(({ remotes }) =>
      remotes.includes("https://git.example.org/tools/hello%20world.git"),
    );
    expect(project).toBeDefined();
    expect(await found("HELLO%20world")).toContain(project?.id);
    const long = own.projects.filter(({ remotes }) =>
      remotes.some((remote) => repositoryNameOf(remote).length > 1_000),
    );
    expect((await found("m".repeat(256))).toSorted()).toEqual(long.map(({ id }) => id));
    expect(long.length).toBeGreaterThan(0);
  });

  test("of 256 characters passes and of 257 does not, counted in characters", async () => {
    for (const letter of ["a", "é", "東", "🐧"]) {
      expect((await list({ filter: { search: letter.repeat(256) } })).status).toBe(200);
      const longer = await list({ filter: { search: letter.repeat(257) } });
      expect([longer.status, reasonOf(longer)]).toEqual([400, "CONSTRAINT_VIOLATED"]);
    }
  });
});

describe("a count", () => {
  test("is exact up to a thousand and says when there are more", async () => {
    const count = { include: true };
    expect((await list({ count })).body.count).toEqual({
      value: 1_000,
      relation: "COUNT_RESPONSE_RELATION_EQUAL",
    });
    const initializer = { specs: [{ git: { remoteUri: "https://git.example.org/one/more.git" } }] };
    const { body } = await post(server, "ProjectService/CreateProject", { initializer });
    expect((await list({ count })).body.count).toEqual({
      value: 1_000,
      relation: "COUNT_RESPONSE_RELATION_GREATER_THAN_OR_EQUAL",
    });
    await post(server, "ProjectService/DeleteProject", { projectId: body.project.id });
  });

  test("stops at the limit that the server was started with", async () => {
    await server.stop();
    server = await startHostedServer({ dataDir: server.dataDir, args: ["--count-limit", "100"] });
    for (const [group, relation] of [
      ["group-99", "EQUAL"],
      ["group-100", "EQUAL"],
      ["group-101", "GREATER_THAN_OR_EQUAL"],
    ] as const) {
      const query = { filter: { annotations: { [group]: "yes" } }, count: { include: true } };
      const { body } = await list(query);
      const value = Math.min(100, Number(group.slice("group-".length)));
      expect(body.count).toEqual({ value, relation: `COUNT_RESPONSE_RELATION_${relation}` });
      expect(await comparePages(server, own, query, 7, 100)).toBe(Number(group.slice("group-".length)));
    }
  });
});
