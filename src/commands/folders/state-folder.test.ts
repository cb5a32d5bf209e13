import { mkdtempSync, realpathSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { defaultDataDir, stateFolder } from "../../config/state-folder.ts";
import { runnerStateDir, serverWorkDir } from "./state-folder.ts";

describe("the state folder", () => {
  test.each([
    [{ XDG_STATE_HOME: "/var/state", HOME: "/home/ada" }, "/var/state/chartroom"],
    [{ HOME: "/home/ada" }, "/home/ada/.local/state/chartroom"],
    [{ XDG_STATE_HOME: "", HOME: "/home/ada" }, "/home/ada/.local/state/chartroom"],
    [{ XDG_STATE_HOME: "relative", HOME: "/home/ada" }, "/home/ada/.local/state/chartroom"],
    [{}, join(homedir(), ".local/state/chartroom")],
  ])("of %j is %s", (env, folder) => {
    expect(stateFolder(env)).toBe(folder);
  });

  test("holds the data of an installed release, and a checkout its own", () => {
    const env = { HOME: "/home/ada" };
    expect(defaultDataDir(env, { isCheckout: true, isRoot: true })).toBe("./data");
    expect(defaultDataDir(env, { isCheckout: false, isRoot: true })).toBe("/var/lib/chartroom");
    expect(defaultDataDir(env, { isCheckout: false, isRoot: false })).toBe(
      "/home/ada/.local/state/chartroom/data",
    );
  });

  const env = { XDG_STATE_HOME: "/state" };

  test("has one folder for each data folder, by whatever path that is named", () => {
    const [one, two] = [mkdtempSync(join(tmpdir(), "data-")), mkdtempSync(join(tmpdir(), "data-"))];
    const link = `${one}-link`;
    symlinkSync(one, link);
    expect(serverWorkDir(env, link)).toBe(serverWorkDir(env, one));
    expect(serverWorkDir(env, one)).not.toBe(serverWorkDir(env, two));
    expect(serverWorkDir(env, one)).toMatch(
      new RegExp(`^/state/chartroom/servers/${basename(realpathSync(one))}-[0-9a-f]{12}$`),
    );
  });

  test("has one folder for the runner of each server", () => {
    const [one, two] = ["http://127.0.0.1:8080", "http://127.0.0.1:8081"];
    expect(runnerStateDir(env, one)).toMatch(/^\/state\/chartroom\/runners\/127\.0\.0\.1-[0-9a-f]{12}$/);
    expect(runnerStateDir(env, one)).not.toBe(runnerStateDir(env, two));
  });
});
