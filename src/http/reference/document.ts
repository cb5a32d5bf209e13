/** The members of a schema in the document that the pages show. */
export interface SchemaView {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly contentEncoding?: string;
  readonly const?: unknown;
  readonly enum?: readonly string[];
  readonly items?: SchemaView;
  readonly additionalProperties?: SchemaView | boolean;
  readonly anyOf?: readonly SchemaView[];
  readonly properties?: Readonly<Record<string, SchemaView>>;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

interface Body {
  readonly content: {
    readonly "application/json": { readonly schema: SchemaView; readonly example?: unknown };
  };
}

/** An operation of the document. */
export interface OperationView {
  readonly tags: readonly string[];
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly parameters: readonly { readonly $ref: string }[];
  readonly requestBody: Body;
  readonly responses: Readonly<Record<string, Body>>;
}

/** The OpenAPI document, as far as its pages read it. */
export interface DocumentView {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly post: OperationView }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, SchemaView>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
}

/** Returns the schema that a reference leads to, and its name. */
export function resolve(document: DocumentView, { $ref = "" }: SchemaView): [name: string, SchemaView] {
  const name = $ref.slice($ref.lastIndexOf("/") + 1);
  return [name, document.components.schemas[name] ?? {}];
}
