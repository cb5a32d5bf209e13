/** Handwritten JSON schemas of the Fastify peer's requests and answers. */

const text = { type: "string" } as const;
const count = { type: "integer" } as const;
const flag = { type: "boolean" } as const;
const list = (items: object) => ({ type: "array", items }) as const;
const object = (properties: object) => ({ type: "object", properties }) as const;

const subject = object({ id: text, principal: text });
const environmentClass = object({ localRunner: flag, environmentClassId: text, order: count });

const project = object({
  id: text,
  metadata: object({
    organizationId: text,
    name: text,
    creator: subject,
    createdAt: text,
    updatedAt: text,
    annotations: { type: "object", additionalProperties: text },
  }),
  initializer: object({
    specs: list(
      object({
        git: object({
          remoteUri: text,
          upstreamRemoteUri: text,
          targetMode: text,
          cloneTarget: text,
          checkoutLocation: text,
        }),
        contextUrl: object({ url: text }),
      }),
    ),
  }),
  environmentClass,
  devcontainerFilePath: text,
  usedBy: object({ totalSubjects: count, subjects: list(subject) }),
  automationsFilePath: text,
  technicalDescription: text,
  prebuildConfiguration: object({
    enabled: flag,
    environmentClassIds: list(text),
    timeout: text,
    trigger: object({ dailySchedule: object({ hourUtc: count }) }),
    executor: subject,
    enableIdeWarmup: flag,
  }),
  desiredPhase: text,
  environmentClasses: list(environmentClass),
  recommendedEditors: object({
    editors: { type: "object", additionalProperties: object({ versions: list(text) }) },
  }),
});

export const getProjectSchema = {
  body: {
    ...object({ projectId: { type: "string", format: "uuid" } }),
    required: ["projectId"],
    additionalProperties: false,
  },
  response: { 200: object({ project }) },
};

export const listProjectsSchema = {
  body: {
    ...object({
      pagination: {
        ...object({
          token: { type: "string", maxLength: 4096 },
          pageSize: { type: "integer", minimum: 0, maximum: 100 },
        }),
        additionalProperties: false,
      },
      filter: {
        ...object({ search: { type: "string", maxLength: 256 } }),
        additionalProperties: false,
      },
    }),
    additionalProperties: false,
  },
  response: { 200: object({ pagination: object({ nextToken: text }), projects: list(project) }) },
};
