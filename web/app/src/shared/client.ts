// A client of the graphql-transport-ws protocol: one socket for all operations,
// which opens itself again when it drops and then asks for everything anew.
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md

export interface Request {
  query: string;
  variables?: Record<string, unknown>;
  operationName?: string | null;
}

export interface GraphQLError {
  message: string;
  path?: (string | number)[];
  extensions?: { code?: string; retryAfterMs?: number };
}

export interface Result<T = unknown> {
  data?: T | null;
  errors?: GraphQLError[];
  extensions?: Record<string, unknown>;
}

/** What an operation is told. After error or complete nothing more comes. */
export interface Sink<T = unknown> {
  next(result: Result<T>): void;
  error(errors: GraphQLError[]): void;
  complete(): void;
}

/**
 * How the connection stands. attempt counts the tries since it was last live;
 * retryAt is when the next one begins, in milliseconds since the epoch.
 */
export interface Status {
  state: "connecting" | "live" | "waiting";
  attempt: number;
  retryAt: number;
  reason: string;
  /** Whether the server turned away what the connection was opened with. */
  refused: boolean;
  /** Whether it has been live before. */
  seen: boolean;
}

export const unconnected: Status = { state: "connecting", attempt: 0, retryAt: 0, reason: "", refused: false, seen: false };

interface Options {
  url: string;
  /** Called before each connection; its payload may carry a token. */
  payload: () => Promise<Record<string, unknown>>;
  onStatus?: (status: Status) => void;
}

interface Operation {
  request: Request;
  sink: Sink<any>;
}

interface Message {
  type: string;
  id?: string;
  payload?: any;
}

const pingEvery = 5_000;
const silenceAllowed = 12_000;
const ackAllowed = 8_000;
const backoffFirst = 500;
const backoffMost = 10_000;

export class Client {
  private readonly operations = new Map<string, Operation>();
  private readonly options: Options;
  private socket: WebSocket | null = null;
  private acknowledged = false;
  private closed = false;
  private serial = 0;
  private heard = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pinger: ReturnType<typeof setInterval> | undefined;
  private status = unconnected;

  constructor(options: Options) {
    this.options = options;
    void this.open();
  }

  /** Starts an operation; the function returned ends it. */
  subscribe<T>(request: Request, sink: Sink<T>): () => void {
    const id = String(++this.serial);
    this.operations.set(id, { request, sink });
    if (this.acknowledged) this.send({ type: "subscribe", id, payload: request });
    return () => {
      if (!this.operations.delete(id)) return;
      if (this.acknowledged) this.send({ type: "complete", id });
    };
  }

  /** Goes to the next attempt without waiting for its time. */
  retry(): void {
    if (this.status.state !== "waiting") return;
    clearTimeout(this.timer);
    void this.open();
  }

  /** Drops the connection and makes a new one, with a new payload. */
  reconnect(): void {
    if (this.status.state === "waiting") this.retry();
    else if (this.socket) this.drop("connecting anew");
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    clearInterval(this.pinger);
    this.operations.clear();
    this.socket?.close(1000);
  }

  private tell(change: Partial<Status>): void {
    this.status = { ...this.status, ...change };
    this.options.onStatus?.(this.status);
  }

  private async open(): Promise<void> {
    this.tell({ state: "connecting", attempt: this.status.attempt + 1, retryAt: 0 });
    let payload: Record<string, unknown>;
    try {
      payload = await this.options.payload();
    } catch (cause) {
      this.wait(cause instanceof Error ? cause.message : String(cause));
      return;
    }
    if (this.closed) return;
    const socket = new WebSocket(this.options.url, "graphql-transport-ws");
    this.socket = socket;
    this.timer = setTimeout(() => this.drop("no answer"), ackAllowed);
    socket.onopen = () => this.send({ type: "connection_init", payload });
    socket.onmessage = (event) => {
      if (socket === this.socket) this.receive(JSON.parse(String(event.data)) as Message);
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.lost(event.reason || (event.code === 1006 ? "" : `closed (${event.code})`), event.code === 4401 || event.code === 4403);
    };
  }

  private send(message: Message): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  private receive(message: Message): void {
    this.heard = Date.now();
    switch (message.type) {
      case "connection_ack":
        this.begin();
        return;
      case "ping":
        this.send({ type: "pong" });
        return;
      case "pong":
        return;
    }
    const operation = this.operations.get(message.id ?? "");
    if (!operation) return;
    if (message.type === "next") {
      operation.sink.next(message.payload);
      return;
    }
    this.operations.delete(message.id!);
    if (message.type === "error") operation.sink.error(message.payload);
    else operation.sink.complete();
  }

  private begin(): void {
    clearTimeout(this.timer);
    this.acknowledged = true;
    this.tell({ state: "live", attempt: 0, reason: "", refused: false, seen: true });
    for (const [id, { request }] of this.operations) this.send({ type: "subscribe", id, payload: request });
    this.pinger = setInterval(() => {
      if (Date.now() - this.heard > silenceAllowed) this.drop("the server fell silent");
      else this.send({ type: "ping" });
    }, pingEvery);
  }

  /** Leaves the socket at once: its close may take as long as it likes. */
  private drop(reason: string): void {
    this.socket?.close(1000);
    this.lost(reason);
  }

  private lost(reason: string, refused = false): void {
    this.socket = null;
    this.acknowledged = false;
    clearTimeout(this.timer);
    clearInterval(this.pinger);
    if (!this.closed) this.wait(reason, refused);
  }

  private wait(reason: string, refused = false): void {
    const step = Math.min(backoffMost, backoffFirst * 2 ** Math.min(this.status.attempt - 1, 10));
    const delay = Math.round(Math.max(backoffFirst, step) * (0.75 + Math.random() / 2));
    this.tell({ state: "waiting", retryAt: Date.now() + delay, reason, refused });
    this.timer = setTimeout(() => void this.open(), delay);
  }
}

/** The websocket beside this page's /graphql. */
export function socketURL(): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/graphql`;
}
