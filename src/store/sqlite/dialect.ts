import { SqliteDialect, SqliteQueryCompiler } from "kysely";

/**
 * Writes `+?` where a value is bound. The engine is built with STAT4, and
 * prepares a statement anew whenever a value is bound that its planner might
 * look at: on the right of a comparison with an index of several columns, in a
 * join, in a LIMIT. That costs 4 to 35 microseconds a query, and no plan here
 * depends on it. The operator, which changes no value of any type, hides the
 * value from the planner. What a partial index asks for must therefore stand in
 * a query as a literal.
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
