import { create } from "@bufbuild/protobuf";
import { expect, test } from "@jest/globals";
import { EnvironmentInitializerSchema } from "#gen/service/v1/environment_pb.js";
import { type EgressSet, rulesOf } from "./work-rules.ts";

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
const rules = (...sets: EgressSet[]) =>
  rulesOf({ sets }, { service: { host: "127.0.0.1", port: 8_080 }, initializer, registries, models });

test("the sources of work are the hosts of its repositories, at the ports of their transports", () => {
  expect(rules("sources")).toEqual([
    { name: "sources", host: "git.example.org", ports: [443] },
    { name: "sources", host: "ssh.example.org", ports: [22, 443] },
    { name: "sources", host: "10.0.0.7", ports: [3_000] },
    { name: "sources", host: "page.example.org", ports: [443] },
  ]);
});

test("the service is its own host and port", () => {
  expect(rules("service")).toEqual([{ name: "service", host: "127.0.0.1", ports: [8_080], isService: true }]);
});

test("sets that are not named allow nothing", () => {
  expect(rules()).toEqual([]);
  expect(rules("models", "registries")).toEqual([...models, ...registries]);
});
