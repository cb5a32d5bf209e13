package chartroom.client;

/**
 * A rule of the contract that a request breaks.
 *
 * @param field the path of the field in the request, such as {@code triggers[0].time.time_zone}
 * @param rule the id of the rule, such as {@code string.uuid}
 * @param message a message for a person
 */
public record Violation(String field, String rule, String message) {}
