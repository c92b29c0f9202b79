// What the playground remembers between visits: its tabs and its history, never
// their headers.

/**
 * A storage that does not keep headers, and with them tokens. Each application
 * has entries of its own: another may be served at the same address later.
 */
export class SafeStorage implements Pick<Storage, "getItem" | "setItem" | "removeItem" | "clear" | "length"> {
  constructor(
    private readonly under: Storage,
    private readonly app: string,
  ) {}

  get length(): number {
    return this.under.length;
  }

  getItem(key: string): string | null {
    return this.under.getItem(this.own(key));
  }

  setItem(key: string, value: string): void {
    const kept = withoutHeaders(value);
    if (/headers/i.test(key) || /bearer\s+\S/i.test(kept)) return;
    this.under.setItem(this.own(key), kept);
  }

  removeItem(key: string): void {
    this.under.removeItem(this.own(key));
  }

  clear(): void {
    this.under.clear();
  }

  private own(key: string): string {
    return `${this.app}:${key}`;
  }
}

/** A text without the headers that tabs and the history hold, if it is JSON. */
function withoutHeaders(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (key, value: unknown) => (key === "headers" ? null : value));
  } catch {
    return text;
  }
}
