import { createClient } from "@connectrpc/connect";
import { useQuery } from "@tanstack/react-query";
import type { EnvironmentClass } from "#gen/service/v1/runner_configuration_pb.js";
import { RunnerConfigurationService } from "#gen/service/v1/runner_configuration_service_pb.js";
import { transport } from "../../api/server.tsx";

const configurations = createClient(RunnerConfigurationService, transport);

/** Reads all environment classes, page by page: the contract has no search for them, so the page filters. */
export function useClasses() {
  return useQuery({
    queryKey: ["classes", { serviceName: RunnerConfigurationService.typeName }],
    async queryFn({ signal }) {
      const classes: EnvironmentClass[] = [];
      let token = "";
      do {
        const page = await configurations.listEnvironmentClasses(
          { pagination: { pageSize: 100, token } },
          { signal },
        );
        classes.push(...page.environmentClasses);
        token = page.pagination?.nextToken ?? "";
      } while (token !== "");
      return classes;
    },
  });
}
