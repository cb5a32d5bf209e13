import { type OperationNode, PostgresQueryCompiler, type PrimitiveValueListNode, type RawNode } from "kysely";
import { postgresForm } from "../expressions.ts";

/**
 * Compiles queries for PostgreSQL: where an expression differs between the engines, its form for this one, and an empty
 * list of values as one that SQL knows.
 */
export class EngineQueryCompiler extends PostgresQueryCompiler {
  protected override visitRaw(node: RawNode): void {
    const form: OperationNode | undefined = postgresForm(node);
    if (form) this.visitNode(form);
    else super.visitRaw(node);
  }

  protected override visitPrimitiveValueList(node: PrimitiveValueListNode): void {
    if (node.values.length === 0) this.append("(select null where false)");
    else super.visitPrimitiveValueList(node);
  }
}
