/** Tracks the turn of an agent, by the inputs that it was given and has confirmed. */
export class Turns {
  /** Given and unconfirmed inputs, in order. */
  readonly #unconfirmed = new Set<string>();
  #isOpen = false;
  #inputId = "";

  /** Returns the input that began the current or the last turn; empty before the first. */
  get inputId(): string {
    return this.#inputId;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Records that the agent is given an input.
   * @returns true if it begins a turn; otherwise it joins the current one
   */
  addInput(inputId: string): boolean {
    this.#unconfirmed.add(inputId);
    return !this.#isOpen && this.#begin(inputId);
  }

  /**
   * Records that the agent confirms an input.
   * @returns true if an input was unconfirmed
   */
  confirmInput(inputId: string): boolean {
    return this.#unconfirmed.delete(inputId);
  }

  /**
   * Records that the agent reports the end of its turn. Inputs that it has not
   * confirmed by then belong to another turn, which begins at once.
   *
   * @returns `waits` when no input is left, `goes-on` when another turn begins,
   *   `unconfirmed` when the agent has not even confirmed the input that began
   *   this turn, which then is not over
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
