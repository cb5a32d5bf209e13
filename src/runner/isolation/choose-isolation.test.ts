import { afterAll, describe, expect, test } from "@jest/globals";
import { stopAll, temporaryFolder } from "../../../test/harness/server.ts";
import { chooseIsolation, type IsolationChoice } from "./choose-isolation.ts";

afterAll(stopAll);

/** Chooses on a machine without any programs; returns the choice and the log. */
async function choose(choice: Partial<IsolationChoice>) {
  const warnings: [object, string][] = [];
  const log = {
    info() {},
    warn: (facts: object, message: string) => void warnings.push([facts, message]),
    error() {},
  };
  const chosen = await chooseIsolation({
    isolation: "auto",
    readable: [],
    hidden: ["/srv/chartroom/data"],
    user: 64_913,
    isRoot: false,
    limits: { processes: 1, memoryBytes: 1, diskBytes: 1, tmpBytes: 1, freeDiskBytes: 1, processors: 0 },
    cgroup: "auto",
    image: "",
    path: "",
    signalGroup: () => undefined,
    programFolders: [temporaryFolder()],
    log,
    ...choice,
  });
  return { name: chosen.name, warnings };
}

const INSTALL = process.platform === "linux" ? /apt-get install bubblewrap/ : /needs Linux/;

describe("where nothing works", () => {
  test("auto isolates nothing, and says why and what can be read", async () => {
    const { name, warnings } = await choose({});
    expect(name).toBe("none");
    expect(warnings).toEqual([
      [
        { isolation: "none", why: expect.stringMatching(INSTALL), readable: ["/srv/chartroom/data"] },
        expect.stringContaining("nothing isolates the work"),
      ],
    ]);
  });

  test("a runner of root does not start, and the error says what to install and which option to use", async () => {
    await expect(choose({ isRoot: true })).rejects.toMatchObject({
      name: "RunnerError",
      message: expect.stringMatching(INSTALL),
    });
    await expect(choose({ isRoot: true })).rejects.toThrow(
      /^a runner that is root starts only with isolation, but bubblewrap .*; and containers .*--isolation none/,
    );
  });

  test("a runner of root starts when it is configured to isolate nothing, and warns", async () => {
    const { name, warnings } = await choose({ isRoot: true, isolation: "none" });
    expect(name).toBe("none");
    expect(warnings).toEqual([[expect.anything(), expect.stringMatching(/^the runner runs as root/)]]);
  });

  test("the class that is demanded is not replaced by another", async () => {
    for (const isRoot of [true, false])
      await expect(choose({ isRoot, isolation: "bubblewrap" })).rejects.toThrow(INSTALL);
  });
});

test("a path that does not exist cannot be made readable", async () => {
  await expect(choose({ readable: ["/no/such/path"] })).rejects.toThrow(
    /\/no\/such\/path, which does not exist/,
  );
});
