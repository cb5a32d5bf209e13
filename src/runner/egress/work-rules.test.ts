import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { EgressHostSet as HostSet } from "#gen/service/v1/organization_pb.js";
import { type EgressHosts, rulesOf } from "./work-rules.ts";

const initializer = create(EnvironmentInitializerSchema, {
  specs: [
    { spec: { case: "git", value: { remoteUri: "https://git.example.org/o/r.git" } } },
    { spec: { case: "git", value: { remoteUri: "git@ssh.example.org:o/r.git" } } },
    { spec: { case: "git", value: { remoteUri: "http://10.0.0.7:3000/o/r" } } },
    { spec: { case: "git", value: { remoteUri: "file:///srv/r.git" } } },
    { spec: { case: "contextUrl", value: { url: "https://page.example.org/o/r/tree/main" } } },
  ],
});
const registries = [{ name: "registries", host: "packages.example.org", ports: [443] }];
const models = [{ name: "models", host: "api.example.org", ports: [443] }];
const rules = (sets: HostSet[], hosts: EgressHosts["hosts"] = []) =>
  rulesOf({ sets, hosts }, { service: { host: "127.0.0.1", port: 8_080 }, initializer, registries, models });

test("the sources of work are the hosts of its repositories, at the ports of their transports", () => {
  expect(rules([HostSet.SOURCES])).toEqual([
    { name: "sources", host: "git.example.org", ports: [443] },
    { name: "sources", host: "ssh.example.org", ports: [22, 443] },
    { name: "sources", host: "10.0.0.7", ports: [3_000] },
    { name: "sources", host: "page.example.org", ports: [443] },
  ]);
});

test("the service is its own host and port", () => {
  expect(rules([HostSet.SERVICE])).toEqual([
    { name: "service", host: "127.0.0.1", ports: [8_080], isService: true },
  ]);
});

test("sets that are not named allow nothing", () => {
  expect(rules([])).toEqual([]);
  expect(rules([HostSet.MODELS, HostSet.REGISTRIES])).toEqual([...models, ...registries]);
});

test("hosts of the policy have its ports, or those of http and https, whatever their spelling", () => {
  const hosts = [
    { host: "A.Example.org", ports: [8_443] },
    { host: "*.b.example" },
    { host: "a/b" },
    { host: "FD00::7" },
  ];
  expect(rules([], hosts)).toEqual([
    { name: "hosts[0]", host: "a.example.org", ports: [8_443] },
    { name: "hosts[1]", host: "*.b.example", ports: [80, 443] },
    { name: "hosts[3]", host: "fd00::7", ports: [80, 443] },
  ]);
});

test("a set of a later release lets nothing through", () => {
  expect(rules([99 as HostSet, HostSet.MODELS])).toEqual(models);
});
