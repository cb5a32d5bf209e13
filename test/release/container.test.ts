import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import packageJson from "../../package.json" with { type: "json" };
import { RUNNER_SETTINGS, SETTINGS } from "../../src/config/config.ts";
import { type Manifest, readYaml, renderChart } from "../harness/chart.ts";
import { ROOT } from "../harness/program.ts";

const DATABASE = {
  "database.url": "postgres://chartroom@db/chartroom",
  "database.passwordSecret": "password",
  keySecret: "key",
};
const RUNNER = { "runner.enabled": true, "runner.exchangeTokenSecret": "exchange" };
const KNOWN = new Set([...Object.values(SETTINGS), ...Object.values(RUNNER_SETTINGS)].map(({ env }) => env));

const kindsOf = (manifests: Manifest[]) =>
  manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`).sort();
/** The pods of what has some, wherever their template lies. */
const podsOf = (manifests: Manifest[]) =>
  manifests
    .map(({ spec }) => (spec.jobTemplate?.spec ?? spec).template?.spec)
    .filter((pod) => pod !== undefined);

describe("the chart", () => {
  test("has one server with a volume and its copies next to it, without a database", () => {
    const manifests = renderChart();
    expect(kindsOf(manifests)).toEqual([
      "NetworkPolicy/team-no-callers",
      "NetworkPolicy/team-server",
      "Service/team",
      "StatefulSet/team-server",
    ]);
    const [pod] = podsOf(manifests);
    expect(pod.containers.map(({ args }: Manifest) => args.join(" "))).toEqual([
      "serve",
      "backup /copies --schedule 17 3 * * * --keep 14",
    ]);
    expect(kindsOf(renderChart({ "backup.enabled": false }))).toContain("StatefulSet/team-server");
    expect(podsOf(renderChart({ "backup.enabled": false }))[0].containers).toHaveLength(1);
  });

  test("has several servers with one key over PostgreSQL, and a job for copies", () => {
    const manifests = renderChart(DATABASE);
    expect(kindsOf(manifests)).toEqual([
      "CronJob/team-backup",
      "Deployment/team-server",
      "NetworkPolicy/team-no-callers",
      "NetworkPolicy/team-server",
      "PersistentVolumeClaim/team-copies",
      "Service/team",
    ]);
    for (const { containers, volumes } of podsOf(manifests)) {
      expect(containers[0].env).toContainEqual({
        name: "CHARTROOM_KEY_FILE",
        value: "/secrets/key/key.json",
      });
      const mounted = containers[0].volumeMounts.map(({ name }: Manifest) => name).sort();
      expect(volumes.map(({ name }: Manifest) => name).sort()).toEqual(mounted);
    }
  });

  test.each([
    ["keySecret", { ...DATABASE, keySecret: "" }],
    ["database.passwordSecret", { ...DATABASE, "database.passwordSecret": "" }],
    ["runner.exchangeTokenSecret", { ...RUNNER, "runner.exchangeTokenSecret": "" }],
  ])("is refused without %s", (name, values) => {
    expect(() => renderChart(values)).toThrow(`${name}: name the Secret`);
  });

  test("lets a monitor and a runner be added, which says what keeps its work in", () => {
    const manifests = renderChart({ ...RUNNER, "serviceMonitor.enabled": true });
    expect(kindsOf(manifests)).toEqual(
      expect.arrayContaining(["ServiceMonitor/team", "StatefulSet/team-runner"]),
    );
    const runner = podsOf(manifests).find((pod: Manifest) => pod.containers[0].name === "runner");
    expect(runner.containers[0].args).toEqual(["runner", "--isolation", "bubblewrap"]);
    expect(runner.hostUsers).toBe(false);
  });

  test.each([
    ["SQLite", {}],
    ["PostgreSQL", DATABASE],
  ])("passes other settings to the server over %s", (_, engine) => {
    const proxies = { name: "CHARTROOM_TRUSTED_PROXIES", value: "10.0.0.0/8" };
    const [server] = podsOf(renderChart({ ...engine, env: [proxies] })).flatMap(({ containers }) =>
      containers.filter(({ name }: Manifest) => name === "server"),
    );
    expect(server.env).toContainEqual(proxies);
    expect(server.env).toContainEqual({ name: "CHARTROOM_BASE_URL", value: "https://chartroom.example.org" });
  });

  test("runs nothing as root, writes to no image, and sets what there is to set", () => {
    const pods = [...podsOf(renderChart({ ...DATABASE, ...RUNNER })), ...podsOf(renderChart())];
    expect(pods).toHaveLength(4);
    for (const { securityContext, containers, automountServiceAccountToken } of pods) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001, fsGroup: 10_001 });
      expect(automountServiceAccountToken).toBe(false);
      for (const { env = [], securityContext: own } of containers) {
        expect(own).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true });
        expect(env.map(({ name }: Manifest) => name).filter((name: string) => !KNOWN.has(name))).toEqual([]);
      }
    }
  });

  test("lets only clients, runners and a monitor in, at what the service names", () => {
    const manifests = renderChart();
    const service = manifests.find(({ kind }) => kind === "Service");
    const policy = manifests.find(
      ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === "team-server",
    );
    const [pod] = podsOf(manifests);
    const named = pod.containers[0].ports.map(({ name }: Manifest) => name);
    expect(service.spec.ports.map(({ targetPort }: Manifest) => targetPort)).toEqual(named);
    expect(policy.spec.ingress.map(({ ports: [{ port }] }: Manifest) => port)).toEqual(named);
  });
});

describe("the compose file", () => {
  const { services, volumes, secrets } = readYaml("deploy/compose.yaml");

  test("names services, volumes and secrets that it has", () => {
    for (const { volumes: used = [], secrets: granted = [], depends_on = {} } of Object.values<Manifest>(
      services,
    )) {
      for (const each of used) expect(Object.keys(volumes)).toContain(each.split(":")[0]);
      for (const each of granted) expect(Object.keys(secrets)).toContain(each);
      for (const each of Object.keys(depends_on)) expect(Object.keys(services)).toContain(each);
    }
  });

  test("runs Chartroom on a root that is not written to, with settings that there are", () => {
    for (const name of ["server", "backup", "runner"]) {
      const { read_only, cap_drop, environment, image } = services[name];
      expect([name, read_only, cap_drop]).toEqual([name, true, ["ALL"]]);
      expect(Object.keys(environment).filter((each) => !KNOWN.has(each))).toEqual([]);
      expect(image).toMatch(new RegExp(`:${packageJson.version}$`));
    }
    expect(services.runner.command).toEqual(["runner", "--isolation", "bubblewrap"]);
    expect(services.server.ports).toEqual(["127.0.0.1:8080:8080"]);
  });
});

describe("the images", () => {
  const lines = readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8").split("\n");

  test("set what there is to set, and end as a user of their own", () => {
    const set = lines
      .filter((line) => line.startsWith("ENV "))
      .flatMap((line) => line.match(/\w+(?==)/g) ?? []);
    expect(set.filter((name) => name !== "NODE_COMPILE_CACHE" && !KNOWN.has(name))).toEqual([]);
    expect(lines.filter((line) => line.startsWith("USER ")).at(-1)).toBe("USER 10001:10001");
    expect(lines.findLast((line) => line.startsWith("FROM"))).toBe("FROM base AS server");
  });

  test("have the program on the PATH, for commands in a container", () => {
    expect(lines.join("\n")).toContain("ln -s /opt/chartroom/bin/chartroom /usr/local/bin/chartroom");
  });

  test("have the folders that volumes of the compose file begin with, as the user's own", () => {
    const made = lines.find((line) => line.includes("install -d -o 10001 -g 10001"))?.split(" ") ?? [];
    const { services } = readYaml("deploy/compose.yaml");
    for (const name of ["server", "backup", "runner"])
      for (const volume of services[name].volumes) expect(made).toContain(volume.split(":")[1]);
  });

  test("are of this release", () => {
    expect(readYaml("deploy/chart/Chart.yaml")).toMatchObject({
      version: packageJson.version,
      appVersion: packageJson.version,
    });
    expect(readYaml("deploy/chart/values.yaml").image).toEqual({
      server: `chartroom-server:${packageJson.version}`,
      runner: `chartroom-runner:${packageJson.version}`,
    });
  });
});
