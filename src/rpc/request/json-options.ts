import { createRegistry } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { ErrorDetailSchema } from "#gen/service/v1/error_reason_pb.js";
import { PolicyDecisionSchema } from "#gen/service/v1/policy_decision_pb.js";
import { JSON_FORM } from "../../store/json.ts";

/** The options for JSON responses: the form of stored JSON, and error details readable in addition to their bytes. */
export const JSON_OPTIONS = {
  ...JSON_FORM,
  registry: createRegistry(ErrorDetailSchema, PolicyDecisionSchema, ViolationsSchema),
};
