import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "@jest/globals";
import {
  EnvironmentWorkService,
  type ReportEnvironmentConnectionsRequest as Report,
} from "#gen/runner/v1/environment_work_service_pb.js";
import { type PoliciesSchema, WorkSchema } from "#gen/runner/v1/work_pb.js";
import { EnvironmentConnection_Refusal as Refusal } from "#gen/service/v1/environment_connection_pb.js";
import { EnvironmentSchema } from "#gen/service/v1/environment_pb.js";
import { ForkEgress } from "#gen/service/v1/fork_work_pb.js";
import { EgressHostSet } from "#gen/service/v1/organization_pb.js";
import { realTools } from "../../../test/harness/assignment.ts";
import { realPrograms } from "../../../test/harness/runner-git.ts";
import { stopAll, temporaryFolder } from "../../../test/harness/server.ts";
import { Secrets } from "../../domain/secrets.ts";
import type { ResolveHost } from "../git/remote-address.ts";
import { createWorkClient } from "../protocol/connection.ts";
import type { WorkFailure } from "../protocol/work-failure.ts";
import { Egress } from "./egress.ts";
import { openNetwork } from "./open-network.ts";

afterAll(stopAll);

const ENVIRONMENT = "01900000-0000-7000-8000-00000000000e";
const lease = { isLost: false };

/** Opens the network of work with `policies`, and a service that accepts its reports unless `take` throws. */
async function working(
  policies: MessageInitShape<typeof PoliciesSchema>,
  options: {
    readonly secret?: string;
    readonly take?: (count: number) => void;
    readonly environment?: MessageInitShape<typeof EnvironmentSchema>;
    readonly resolve?: ResolveHost;
  } = {},
) {
  const { secret, take = () => undefined, environment: more, resolve } = options;
  const reports: Report[] = [];
  const transport = createRouterTransport(({ service }) =>
    service(EnvironmentWorkService, {
      reportEnvironmentConnections(report) {
        reports.push(report);
        take(reports.length);
        return {};
      },
    }),
  );
  const egress = new Egress({
    serverUrl: "",
    named: { registries: [], models: [] },
    privateNetworks: [{ address: "127.0.0.0", prefix: 8, family: "ipv4" }],
    machine: { programs: { ...realPrograms, path: "" }, env: {}, home: "/nonexistent" },
    ...(resolve && { resolve }),
  });
  const tools = { ...(await realTools()), egress, connections: createWorkClient(transport, "cr_run_x") };
  const secrets = new Secrets();
  if (secret) secrets.add(secret);
  const work = create(WorkSchema, { policies });
  const place = { folder: temporaryFolder() };
  const environment = create(EnvironmentSchema, { ...more, id: ENVIRONMENT });
  const network = await openNetwork({ tools, work, lease, secrets, warnings: [] }, place, environment);
  if (!network) throw new Error("there is no network");
  const get = async (url: string) => {
    const req = request({ socketPath: network.socketFile, path: url, headers: { host: new URL(url).host } });
    const [res] = await once(req.end(), "response");
    res.resume();
    await once(res, "end");
    return res.statusCode as number;
  };
  return { network, get, reports, connections: () => reports.flatMap((report) => report.connections) };
}

test("work with a policy is refused where nothing isolates it, and other work has the machine's network", async () => {
  const tools = await realTools();
  const place = { folder: "/nonexistent" };
  const work = create(WorkSchema, { policies: { egress: {} } });
  const secrets = new Secrets();
  await expect(
    openNetwork({ tools, work, lease, secrets, warnings: [] }, place, undefined),
  ).rejects.toMatchObject({
    reason: "policy_unsupported",
    message: expect.stringContaining("egress"),
  });
  const warnings: WorkFailure[] = [];
  const free = { tools, work: create(WorkSchema), lease, secrets, warnings };
  expect(await openNetwork(free, place, undefined)).toBeUndefined();
  expect(warnings).toEqual([]);
  // Without isolation no request gets the secret, and a warning says so.
  const credentialProxy = { targetHosts: ["a.example"], header: "authorization" };
  const proxied = create(WorkSchema, { secrets: [{ name: "MOUNTED" }, { name: "PUT_IN", credentialProxy }] });
  expect(await openNetwork({ ...free, work: proxied }, place, undefined)).toBeUndefined();
  expect(warnings).toMatchObject([
    {
      reason: "secret_not_put_in",
      message: expect.stringContaining("the secret PUT_IN has a credential proxy"),
    },
  ]);
});

test("what is refused is reported, and what is allowed where the policy says so", async () => {
  const host = createServer((_, res) => res.end("hello"));
  host.listen(0, "127.0.0.1");
  await once(host, "listening");
  const { port } = host.address() as AddressInfo;
  const hosts = [{ host: "127.0.0.1", ports: [port] }];
  for (const recordAllowed of [false, true]) {
    const work = await working({ egress: { hosts, recordAllowed } });
    expect(await work.get(`http://127.0.0.1:${port}/`)).toBe(200);
    expect(await work.get("http://a.example/")).toBe(403);
    await work.network.close();
    const [refused, allowed] = work.connections().toSorted((one, other) => other.refusal - one.refusal);
    expect(refused).toMatchObject({ host: "a.example", port: 80, rule: "", refusal: Refusal.NOT_ALLOWED });
    if (recordAllowed) {
      expect(allowed).toMatchObject({ host: "127.0.0.1", port, rule: "hosts[0]", refusal: 0 });
      expect([allowed?.sentBytes, allowed?.receivedBytes].every((bytes = 0n) => bytes > 10n)).toBe(true);
    } else expect(allowed).toBeUndefined();
    expect(work.reports.every(({ environmentId }) => environmentId === ENVIRONMENT)).toBe(true);
  }
  host.close();
});

test("a secret in a name is in no report and no output, also in small letters", async () => {
  const work = await working({ egress: {} }, { secret: "Zx81Spectrum" });
  expect(await work.get("http://zx81spectrum.a.example/")).toBe(403);
  await work.network.close();
  expect(work.connections().map(({ host }) => host)).toEqual(["***.a.example"]);
  expect(work.network.takeRefusals().join()).toContain("***.a.example:80");
});

test("a report is repeated while the service does not answer, and with the same ids", async () => {
  const take = (count: number) => {
    if (count === 1) throw new ConnectError("away", Code.Unavailable);
  };
  const work = await working({ egress: {} }, { take });
  await work.get("http://a.example/");
  await work.network.close();
  const [first, second] = work.reports;
  expect(work.reports).toHaveLength(2);
  expect(second?.connections[0]?.id).toBe(first?.connections[0]?.id);
});

test("nothing more is reported to a service that does not know it", async () => {
  const take = () => {
    throw new ConnectError("unknown", Code.Unimplemented);
  };
  const work = await working({ egress: {} }, { take });
  await work.get("http://a.example/");
  await work.network.close();
  expect(work.reports).toHaveLength(1);
});

test("what the service would not keep is not reported, only that it was", async () => {
  const work = await working({ egress: {} });
  for (let count = 0; count < 1_002; count++) await work.get("http://a.example/");
  await work.network.close();
  expect(work.connections()).toHaveLength(1_000);
  expect(work.reports.filter(({ leftOut }) => leftOut)).toHaveLength(1);
});

describe("work that a pull request from a fork began", () => {
  const SOURCE = { case: "git", value: { remoteUri: "http://127.0.0.1:1/team/ship.git" } } as const;
  const begun = (forkEgress?: ForkEgress) => ({
    metadata: { secretsWithheld: true, ...(forkEgress !== undefined && { forkEgress }) },
    spec: { content: { initializer: { specs: [{ spec: SOURCE }] } } },
  });
  const egress = { sets: [EgressHostSet.SOURCES], hosts: [{ host: "b.example" }] };

  test.each([
    ["its repository alone", undefined, 403, Refusal.BEGUN_BY_FORK],
    ["its repository alone, where the trigger says so", ForkEgress.SOURCES, 403, Refusal.BEGUN_BY_FORK],
    ["what the policy allows, where the trigger says so", ForkEgress.POLICY, 502, Refusal.NO_ADDRESS],
  ])("reaches %s", async (_, forkEgress, status, refusal) => {
    const work = await working({ egress }, { environment: begun(forkEgress), resolve: async () => [] });
    // The request was allowed, but nothing listens there.
    expect(await work.get("http://127.0.0.1:1/")).toBe(502);
    expect(await work.get("http://b.example/")).toBe(status);
    await work.network.close();
    expect(work.connections()).toMatchObject([{ host: "b.example", refusal }]);
  });

  test("may be that of an action whose environment, of an earlier release, does not tell", async () => {
    const { spec } = begun();
    const environment = { spec: { ...spec, workflowActionId: "action" } };
    const work = await working({ egress }, { environment, resolve: async () => [] });
    expect(await work.get("http://b.example/")).toBe(403);
    await work.network.close();
    expect(work.connections()).toMatchObject([{ refusal: Refusal.BEGUN_BY_FORK }]);
  });

  test("reaches nothing more than the policy allows, not even its repository", async () => {
    const work = await working({ egress: {} }, { environment: begun() });
    expect(await work.get("http://127.0.0.1:1/")).toBe(403);
    await work.network.close();
  });

  test("is refused by a runner that isolates nothing, where its trigger asks for that", async () => {
    const tools = await realTools();
    const assignment = { tools, work: create(WorkSchema), lease, secrets: new Secrets(), warnings: [] };
    const place = { folder: "/nonexistent" };
    const of = (forkEgress?: ForkEgress) => create(EnvironmentSchema, begun(forkEgress));
    await expect(openNetwork(assignment, place, of(ForkEgress.SOURCES))).rejects.toMatchObject({
      reason: "policy_unsupported",
    });
    for (const other of [undefined, ForkEgress.POLICY])
      expect(await openNetwork(assignment, place, of(other))).toBeUndefined();
  });
});
