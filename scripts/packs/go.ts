/**
 * Makes the Go module from the contract and packages/go, as a folder for a `replace` directive.
 *
 *   npm run pack:go -- --to FOLDER
 *
 * Takes the `go` of the PATH, 1.26 or newer (docs/clients/go.md).
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type PackService, ROOT, readServices } from "./contract.ts";

const MODULE = "chartroom.example/client";

const { values: flags } = parseArgs({ options: { to: { type: "string", default: "release" } } });
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const folder = join(resolve(flags.to), `chartroom-go-${version}`);
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
cpSync(join(ROOT, "packages/go"), folder, { recursive: true });
cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
generateMessages();
writeFileSync(join(folder, "services.go"), servicesFile(readServices(ROOT)));
run("gofmt", "-w", "services.go");
process.stdout.write(`${folder}\n`);

function run(program: string, ...args: string[]): void {
  execFileSync(program, args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
}

/** Generates the messages and the clients of Connect by the generators that the module's go.mod pins. */
function generateMessages(): void {
  const rules = "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate";
  const template = {
    version: "v2",
    managed: {
      enabled: true,
      override: [
        { file_option: "go_package_prefix", value: MODULE },
        { file_option: "go_package", path: "buf/validate/validate.proto", value: rules },
      ],
    },
    inputs: [{ directory: join(ROOT, "proto"), paths: [join(ROOT, "proto/service")] }],
    plugins: [
      { local: ["go", "tool", "protoc-gen-go"], out: ".", opt: "paths=source_relative" },
      { local: ["go", "tool", "protoc-gen-connect-go"], out: ".", opt: ["paths=source_relative", "simple"] },
    ],
  };
  run(join(ROOT, "node_modules/.bin/buf"), "generate", "--template", JSON.stringify(template));
}

/** Returns the file with a field for each service. */
function servicesFile(services: readonly PackService[]): string {
  const named = services.map((service) => ({ ...service, field: service.name.replace(/Service$/, "") }));
  return `// Made by the build of the module.

package chartroom

import (
	"connectrpc.com/connect"

	"${MODULE}/service/v1/servicev1connect"
)

// Version is the version of the module, which is that of the server.
const Version = "${version}"

// Services has the operations of each service of the contract.
type Services struct {
${named.map(({ field, name, comment }) => `${comment.replaceAll(/^/gm, "\t// ")}\n\t${field} servicev1connect.${name}Client`).join("\n")}
}

func newServices(http connect.HTTPClient, url string, options ...connect.ClientOption) Services {
	return Services{
${named.map(({ field, name }) => `\t\t${field}: servicev1connect.New${name}Client(http, url, options...),`).join("\n")}
	}
}
`;
}
