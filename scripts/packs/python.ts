/**
 * Makes the wheel of the Python package from the contract and packages/python.
 *
 *   npm run pack:python -- --to FOLDER
 *
 * Takes the `python3` of the PATH, with the packages grpcio-tools and setuptools (docs/clients/python.md).
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { DescMessage } from "@bufbuild/protobuf";
import { type PackOperation, type PackService, ROOT, readServices, snakeCase } from "./contract.ts";

const { values: flags } = parseArgs({ options: { to: { type: "string", default: "release" } } });
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const scratch = mkdtempSync(join(tmpdir(), "chartroom-python-"));
try {
  const folder = join(scratch, "package");
  cpSync(join(ROOT, "packages/python"), folder, { recursive: true });
  cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  const manifest = join(folder, "pyproject.toml");
  writeFileSync(
    manifest,
    readFileSync(manifest, "utf8").replace('version = "0.0.0"', `version = "${version}"`),
  );
  generateMessages(folder);
  writeFileSync(join(folder, "chartroom/services.py"), servicesModule(readServices(ROOT)));
  const wheels = resolve(flags.to);
  mkdirSync(wheels, { recursive: true });
  run("python3", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", wheels, folder);
  process.stdout.write(`${join(wheels, `chartroom_client-${version}-py3-none-any.whl`)}\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { cwd: ROOT, env: buildEnvironment(), stdio: ["ignore", "ignore", "inherit"] });
}

/** The files of the wheel have the time of the commit, so that the same commit makes the same wheel. */
function buildEnvironment(): NodeJS.ProcessEnv {
  const time = execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT, encoding: "utf8" });
  return { ...process.env, SOURCE_DATE_EPOCH: time.trim() };
}

/** Generates the messages without the rules, whose declarations another package may bring, into `chartroom`. */
function generateMessages(folder: string): void {
  const protoc = { protoc_path: ["python3", "-m", "grpc_tools.protoc"], out: "." };
  const template = {
    version: "v2",
    inputs: [
      { directory: "proto", paths: ["proto/service"], exclude_types: ["buf.validate"] },
      { directory: join(folder, "proto") },
    ],
    plugins: ["python", "pyi"].map((name) => ({ protoc_builtin: name, ...protoc })),
  };
  const generated = join(folder, "generated");
  const buf = join(ROOT, "node_modules/.bin/buf");
  run(buf, "generate", "--template", JSON.stringify(template), "--output", generated);
  cpSync(join(generated, "service"), join(folder, "chartroom/service"), { recursive: true });
  cpSync(join(generated, "chartroom"), join(folder, "chartroom"), { recursive: true });
  const modules = join(folder, "chartroom/service/v1");
  for (const name of readdirSync(modules)) {
    const code = readFileSync(join(modules, name), "utf8");
    // The modules belong to this package, not to one of the name `service`.
    const imports = code.replaceAll(/^from service\.v1 import/gm, "from chartroom.service.v1 import");
    writeFileSync(join(modules, name), imports);
  }
  for (const name of ["service", "service/v1"])
    writeFileSync(join(folder, "chartroom", name, "__init__.py"), "");
}

/** Returns the module with a class for each service and one that has them all. */
function servicesModule(services: readonly PackService[]): string {
  const messages = services.flatMap(({ operations }) =>
    operations.flatMap(({ method, entries }) => [
      method.input,
      method.output,
      entries?.message ?? method.input,
    ]),
  );
  const modules = [...new Set(messages.map(moduleOf))].toSorted();
  return `"""The services of the contract. Made by the build of the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .caller import Caller
from .operation import Operation
${modules.map((name) => `from .service.v1 import ${name}`).join("\n")}

${services.map(serviceClass).join("\n\n")}

class Services:
    """All services of the contract."""

    def __init__(self, caller: Caller) -> None:
${services.map(({ name, words }) => `        self.${words.join("_")} = ${name}(caller)`).join("\n")}
`;
}

function serviceClass({ name, comment, operations }: PackService): string {
  return `
class ${name}:
    ${docstring(comment, "    ")}

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
${operations.map((operation) => operationMethods(operation)).join("")}
${operations.map((operation) => operationConstant(name, operation)).join("\n")}
`;
}

function constantOf({ method }: PackOperation): string {
  return `_${snakeCase(method.parent.name)}_${snakeCase(method.name)}`.toUpperCase();
}

function operationMethods(operation: PackOperation): string {
  const { method, comment, entries, hasEffect, isStream } = operation;
  const name = snakeCase(method.name);
  const constant = constantOf(operation);
  const request = `self, request: ${typeOf(method.input)} | Mapping[str, Any] | None = None`;
  const response = `${typeOf(method.output)}`;
  const doc = docstring(comment, "        ");
  const timeout = "timeout: float | None = None";
  if (isStream) {
    return `
    def ${name}(${request}) -> Iterator[${response}]:
        ${doc}
        return self._caller.stream(${constant}, request)
`;
  }
  const key = hasEffect ? ", idempotency_key: str | None = None" : "";
  const call = `
    def ${name}(${request}, *, ${timeout}${key}) -> ${response}:
        ${doc}
        return self._caller.unary(${constant}, request, timeout, ${hasEffect ? "idempotency_key" : "None"})
`;
  if (entries === undefined) return call;
  const entry = entries.message === undefined ? "Any" : typeOf(entries.message);
  return `${call}
    def ${name}_pages(${request}, *, ${timeout}) -> Iterator[${response}]:
        """Yields the pages of \`${name}\` from the one that the request names to the last."""
        return self._caller.pages(${constant}, request, timeout)

    def ${name}_items(${request}, *, ${timeout}) -> Iterator[${entry}]:
        """Yields the entries of all pages of \`${name}\`."""
        return self._caller.items(${constant}, request, timeout, "${entries.name}")
`;
}

function operationConstant(service: string, operation: PackOperation): string {
  const { method, hasEffect } = operation;
  const messages = `${typeOf(method.input)}, ${typeOf(method.output)}`;
  return `
${constantOf(operation)} = Operation(
    "service.v1.${service}/${method.name}", ${messages}, ${hasEffect ? "True" : "False"}
)`;
}

/** Returns the module of a message, such as `project_pb2`. */
function moduleOf({ file }: DescMessage): string {
  return `${file.name.replace(/^.*\//, "")}_pb2`;
}

function typeOf(message: DescMessage): string {
  return `${moduleOf(message)}.${message.typeName.replace(/^service\.v1\./, "")}`;
}

function docstring(comment: string, indent: string): string {
  return `"""${comment.replaceAll("\\", "\\\\").replaceAll('"""', "'''").replaceAll("\n", `\n${indent}`)}\n${indent}"""`;
}
