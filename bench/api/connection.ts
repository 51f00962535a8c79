import { connect, type Socket } from "node:net";

type OnResponse = (status: number) => void;

/**
 * A keep-alive connection with one request at a time. It only reads the status of a response and finds its end, so
 * that the server dominates the measurement.
 */
export class Connection {
  readonly #url: URL;
  #socket: Socket;
  #received = "";
  /** The server closes the connection after the last response, so the next request needs a new one. */
  #isClosing = false;
  #onResponse: OnResponse = () => undefined;

  private constructor(url: URL, socket: Socket) {
    this.#url = url;
    this.#socket = socket;
    this.#use(socket);
  }

  /** Rejects if the connection cannot be opened. A later failure ends the process: it invalidates the result. */
  static open(url: string): Promise<Connection> {
    const parsed = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(parsed.port), parsed.hostname, () => {
        socket.off("error", reject);
        resolve(new Connection(parsed, socket));
      });
      socket.once("error", reject);
    });
  }

  /** Sends a request. The next one may be sent once the response has arrived, also from `onResponse`. */
  send(request: string | Buffer, onResponse: OnResponse): void {
    this.#onResponse = onResponse;
    if (this.#isClosing) {
      this.#socket.destroy();
      this.#isClosing = false;
      this.#socket = connect(Number(this.#url.port), this.#url.hostname);
      this.#use(this.#socket);
    }
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.destroy();
  }

  #use(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#receive(text));
    socket.on("end", () => {
      if (socket === this.#socket && this.#isClosing) return;
      throw new Error("a server closed the connection in the middle of a measurement");
    });
  }

  #receive(text: string): void {
    this.#received += text;
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const length = CONTENT_LENGTH.exec(this.#received)?.[1];
    if (length === undefined) throw new Error(`a response without a length: ${this.#received}`);
    if (this.#received.length < headEnd + 4 + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    // The API closes connections after failed authentications.
    this.#isClosing = status === 401;
    this.#received = "";
    this.#onResponse(status);
  }
}

const CONTENT_LENGTH = /\r\ncontent-length: (\d+)/i;
