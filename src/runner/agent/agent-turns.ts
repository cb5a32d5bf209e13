/** Tracks an agent's turns by the inputs that it was sent and has confirmed. */
export class Turns {
  /** Inputs that were sent and are not confirmed yet, in order. */
  readonly #unconfirmed = new Set<string>();
  #isOpen = false;
  #inputId = "";

  /** Returns the id of the input that began the current or the last turn; empty before the first. */
  get inputId(): string {
    return this.#inputId;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Records an input that is sent to the agent.
   * @returns true if it begins a turn, false if it joins the current one
   */
  addInput(inputId: string): boolean {
    this.#unconfirmed.add(inputId);
    return !this.#isOpen && this.#begin(inputId);
  }

  /**
   * Records that the agent confirms an input.
   * @returns true if the input was waiting for its confirmation
   */
  confirmInput(inputId: string): boolean {
    return this.#unconfirmed.delete(inputId);
  }

  /**
   * Records that the agent reports the end of its turn. Inputs that it has not
   * confirmed by then belong to the next turn, which begins at once.
   *
   * @returns `waits` when no input is left, `goes-on` when another turn begins, `unconfirmed` when the agent has not
   *   confirmed the input that began this turn; the turn is not over then
   */
  end(): "waits" | "goes-on" | "unconfirmed" {
    if (this.#isOpen && this.#unconfirmed.has(this.#inputId)) return "unconfirmed";
    this.#isOpen = false;
    const [next] = this.#unconfirmed;
    if (next === undefined) return "waits";
    this.#begin(next);
    return "goes-on";
  }

  #begin(inputId: string): true {
    this.#isOpen = true;
    this.#inputId = inputId;
    return true;
  }
}
