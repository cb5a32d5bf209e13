import { fromBinary } from "@bufbuild/protobuf";
import { expect } from "@jest/globals";
import { ErrorDetailSchema, ErrorReason } from "#gen/service/v1/error_reason_pb.js";
import { type Answer, reasonOf } from "../harness/call.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Matches a stack trace or a path of the server's machine. */
const INSIDES = /\n\s+at |node:internal|node_modules|\.[jt]s:\d+|\/src\//;

/**
 * Checks the promises of every error response: JSON with a code, a message, one ErrorDetail with a
 * reason of the catalogue, a request id, and no internals of the server.
 */
export function expectError(answer: Answer, status: number, code: string, reason: string): void {
  const { body, header } = answer;
  expect({ status: answer.status, code: body?.code, reason: reasonOf(answer) }).toEqual({
    status,
    code,
    reason,
  });
  expect(header.get("content-type")).toBe("application/json");
  expect(header.get("x-request-id")).toMatch(UUID);
  expect(body.message).toMatch(/\S/);
  expect(JSON.stringify(body)).not.toMatch(INSIDES);
  const details = body.details.filter(({ type }: { type: string }) => type === "service.v1.ErrorDetail");
  expect(details).toHaveLength(1);
  const detail = fromBinary(ErrorDetailSchema, Buffer.from(details[0].value, "base64"));
  expect([ErrorReason[detail.reason], detail.metadata]).toEqual([reason, details[0].debug.metadata]);
}
