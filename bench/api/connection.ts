import { connect, type Socket } from "node:net";

type OnAnswer = (status: number) => void;

/**
 * One keep-alive connection on which requests go one after the other: as little as can be done for one, so
 * that the server is what is measured. Of an answer it reads the status, and where it ends.
 */
export class Connection {
  readonly #socket: Socket;
  #received = "";
  #onAnswer: OnAnswer = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#receive(text));
    socket.on("end", () => {
      throw new Error("a server closed the connection in the middle of a measurement");
    });
  }

  /** Rejects if it cannot be opened. If it breaks later, that ends the process: nothing could be measured. */
  static open(url: string): Promise<Connection> {
    const { hostname, port } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
      socket.once("error", reject);
    });
  }

  /** The next request may be sent as soon as the answer has come, also by `onAnswer` itself. */
  send(request: string | Buffer, onAnswer: OnAnswer): void {
    this.#onAnswer = onAnswer;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(text: string): void {
    this.#received += text;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = CONTENT_LENGTH.exec(this.#received)?.[1];
    if (length === undefined) throw new Error(`an answer does not tell its length: ${this.#received}`);
    if (this.#received.length < headEnd + 4 + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = "";
    this.#onAnswer(status);
  }
}

const CONTENT_LENGTH = /\r\ncontent-length: (\d+)/i;
