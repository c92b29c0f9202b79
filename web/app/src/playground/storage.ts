// What the playground remembers between visits: its tabs and its history, never
// their headers.

/** A storage that does not keep headers, and with them tokens. */
export class SafeStorage implements Pick<Storage, "getItem" | "setItem" | "removeItem" | "clear" | "length"> {
  constructor(private readonly under: Storage) {}

  get length(): number {
    return this.under.length;
  }

  getItem(key: string): string | null {
    return this.under.getItem(key);
  }

  setItem(key: string, value: string): void {
    const kept = withoutHeaders(value);
    if (/headers/i.test(key) || /bearer\s+\S/i.test(kept)) return;
    this.under.setItem(key, kept);
  }

  removeItem(key: string): void {
    this.under.removeItem(key);
  }

  clear(): void {
    this.under.clear();
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
