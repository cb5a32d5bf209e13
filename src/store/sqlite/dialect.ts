import { SqliteDialect, SqliteQueryCompiler } from "kysely";

/**
 * Writes `+?` where a value is bound. The engine is built with STAT4, and prepares a statement
 * again whenever a value is bound that its planner might look at: on the right of a comparison with
 * an index of several columns, in a join, in a LIMIT. That costs 4 to 35 microseconds per query,
 * and no plan here depends on it. The operator, which changes no value of any type, hides the value
 * from the planner. The condition of a partial index must therefore be a literal in a query.
 */
export class StablePlans extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return "+?";
  }
}

/** The query builder's dialect for SQLite, with statements that stay prepared. */
export class StableSqliteDialect extends SqliteDialect {
  override createQueryCompiler(): SqliteQueryCompiler {
    return new StablePlans();
  }
}
