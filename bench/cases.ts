import { COMMON_WORD, RARE_WORD } from "./data/project-rows.ts";
import type { Seeded } from "./data/seed.ts";
import type { LoadRequest, LoadTask } from "./load/task.ts";
import type { PeerName } from "./peers/start-peer.ts";

/** A kind of request that several servers are measured with in turn. */
export interface Case {
  readonly name: string;
  readonly title: string;
  /** Reads and writes run on separate servers, since writes would change what reads return. */
  readonly group: "reads" | "writes";
  readonly peers: readonly PeerName[];
  readonly connections: number;
  readonly requests: (data: Seeded) => LoadRequest[];
  /** The form of the requests to a peer; JSON by default. */
  readonly forms?: Partial<Record<PeerName, LoadTask["form"]>>;
}

const READERS: readonly PeerName[] = ["ours", "ceiling", "fastify", "connect-node"];
const WRITERS: readonly PeerName[] = ["ours", "one-commit-each", "connect-node"];

/** Number of different requests that each connection sends in turn. */
const VARIETY = 200;

export const CASES: readonly Case[] = [
  read("get", "GetProject", someProjects),
  read("list25", "ListProjects of 25", () => [request("ListProjects", { pagination: { pageSize: 25 } })]),
  read("list100", "ListProjects of 100", () => [request("ListProjects", { pagination: { pageSize: 100 } })]),
  read("search-rare", "a search that few projects match", () => [search(RARE_WORD)]),
  read("search-common", "a search that a third of the projects match", () => [search(COMMON_WORD)]),
  {
    name: "binary-get",
    title: "GetProject in binary: Connect over HTTP/1.1, against gRPC",
    group: "reads",
    peers: ["ours", "grpc-js"],
    connections: 32,
    requests: someProjects,
    forms: { ours: "binary", "grpc-js": "grpc" },
  },
  {
    name: "grpc-get",
    title: "GetProject by gRPC",
    group: "reads",
    peers: ["ours", "grpc-js"],
    connections: 32,
    requests: someProjects,
    forms: { ours: "grpc", "grpc-js": "grpc" },
  },
  write("create1", "CreateProject, durable, 1 connection", 1, created),
  write("create32", "CreateProject, durable, 32 connections", 32, created),
  write("create128", "CreateProject, durable, 128 connections", 128, created),
  write("create100", "CreateProjects of 100, durable, 4 connections", 4, () =>
    varied((index) => {
      const projects = Array.from({ length: 100 }, (_, element) => template(index * 100 + element));
      return request("CreateProjects", { projects });
    }, 10),
  ),
  write("update", "UpdateProject, durable, 32 connections", 32, (data) =>
    varied((index) => updated(data, index)),
  ),
  write("mix", "9 GetProject to 1 UpdateProject, 32 connections", 32, (data) =>
    varied((index) =>
      index % 10 === 9
        ? updated(data, index)
        : request("GetProject", { projectId: data.projectIds[index % data.projectIds.length] }),
    ),
  ),
];

function read(name: string, title: string, requests: Case["requests"]): Case {
  return { name, title, group: "reads", peers: READERS, connections: 32, requests };
}

function write(name: string, title: string, connections: number, requests: Case["requests"]): Case {
  return { name, title, group: "writes", peers: WRITERS, connections, requests };
}

function someProjects({ projectIds }: Seeded): LoadRequest[] {
  return varied((index) => request("GetProject", { projectId: projectIds[index % projectIds.length] }));
}

function request(operation: string, body: object): LoadRequest {
  return { operation: `ProjectService/${operation}`, body: JSON.stringify(body) };
}

function search(word: string): LoadRequest {
  return request("ListProjects", { filter: { search: word }, pagination: { pageSize: 25 } });
}

function created(): LoadRequest[] {
  return varied((index) => request("CreateProject", template(index)));
}

function updated({ projectIds }: Seeded, index: number): LoadRequest {
  const projectId = projectIds[index % projectIds.length];
  return request("UpdateProject", { projectId, name: `Renamed project ${index}` });
}

function template(index: number): object {
  const remoteUri = `https://git.example.org/team/made-${index}.git`;
  return {
    name: `Made project ${index}`,
    initializer: { specs: [{ git: { remoteUri } }] },
    devcontainerFilePath: ".devcontainer/devcontainer.json",
    annotations: { team: "north", "example.org/cost-center": "4000" },
  };
}

function varied(one: (index: number) => LoadRequest, count = VARIETY): LoadRequest[] {
  return Array.from({ length: count }, (_, index) => one(index));
}
