const ESCAPE = "\u001b";
const CONTROL = /^\[(\??)([\d;]*)([A-Za-z])/;

/**
 * The text on a terminal after some output: the part of xterm that the live view uses.
 * The number of rows is unlimited, so that text that scrolled away can still be read.
 */
export class Screen {
  readonly #columns: number;
  readonly #rows: string[] = [""];
  #row = 0;
  #column = 0;
  isCursorShown = true;
  isWrapping = true;

  private constructor(columns: number) {
    this.#columns = columns;
  }

  /** @throws Error for a control code that it does not know */
  static of(output: string, columns: number): Screen {
    const screen = new Screen(columns);
    screen.#read(output);
    return screen;
  }

  /** The lines without trailing blanks, and without empty lines at the bottom. */
  get lines(): readonly string[] {
    const lines = this.#rows.map((row) => row.trimEnd());
    while (lines.at(-1) === "") lines.pop();
    return lines;
  }

  get text(): string {
    return this.lines.join("\n");
  }

  #read(output: string): void {
    for (let rest = output; rest !== ""; ) {
      const isControl = rest.startsWith(ESCAPE);
      const [code = "", mode, parameters = "", letter] = (isControl && CONTROL.exec(rest.slice(1))) || [];
      if (isControl) this.#control(`${mode}${letter}`, parameters);
      else this.#put(rest.charAt(0));
      rest = rest.slice(1 + code.length);
    }
  }

  #control(what: string, parameters: string): void {
    const count = Number(parameters || "1");
    switch (what) {
      case "m":
        return;
      case "A":
        this.#row = Math.max(0, this.#row - count);
        return;
      case "G":
        this.#column = count - 1;
        return;
      case "K":
        this.#rows[this.#row] = this.#line.slice(0, this.#column);
        return;
      case "J":
        this.#rows[this.#row] = this.#line.slice(0, this.#column);
        this.#rows.splice(this.#row + 1);
        return;
      case "?h":
      case "?l":
        this.#mode(parameters, what === "?h");
        return;
      default:
        throw new Error(`The control code ${what} is not known here.`);
    }
  }

  #mode(parameters: string, isOn: boolean): void {
    if (parameters === "25") this.isCursorShown = isOn;
    else if (parameters === "7") this.isWrapping = isOn;
    else throw new Error(`The mode ${parameters} is not known here.`);
  }

  #put(character: string): void {
    if (character === "\n") this.#feed();
    else if (character === "\r") this.#column = 0;
    else if (character < " ")
      throw new Error(`The character ${JSON.stringify(character)} is not known here.`);
    else this.#print(character);
  }

  #print(character: string): void {
    if (this.#column >= this.#columns) {
      if (!this.isWrapping) this.#column = this.#columns - 1;
      else {
        this.#feed();
        this.#column = 0;
      }
    }
    const line = this.#line.padEnd(this.#column);
    this.#rows[this.#row] = line.slice(0, this.#column) + character + line.slice(this.#column + 1);
    this.#column += 1;
  }

  #feed(): void {
    this.#row += 1;
    this.#rows[this.#row] ??= "";
  }

  get #line(): string {
    return this.#rows[this.#row] ?? "";
  }
}
