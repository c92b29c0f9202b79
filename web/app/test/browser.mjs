// A browser for the tests, and pages that notice what they should not do.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { createMock } from "../dev/mock.mjs";

/** A mock of a test's own. */
export async function mockOf(t, options) {
  const mock = await createMock(options);
  t.after(() => mock.close());
  return mock;
}

/** Starts the browser; CHROMIUM is where it is. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** The server under test: that of BASE_URL, or a mock. */
export async function server() {
  const given = process.env.BASE_URL;
  if (given) return { url: given.replace(/\/$/, ""), close: async () => {} };
  return createMock();
}

/**
 * Opens a page for a test in a context of its own. What it logs as an error, throws, or
 * asks of another origin is in faults.
 */
export async function open(t, browser, url, { width = 1280, height = 900, scheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  t.after(() => context.close());
  const page = await context.newPage();
  const faults = [];
  const { host } = new URL(url);
  const own = (address) => ["data:", "blob:"].includes(new URL(address).protocol) || new URL(address).host === host;
  await context.route("**/*", (route) => {
    if (own(route.request().url())) return route.continue();
    faults.push(`request to ${route.request().url()}`);
    return route.abort();
  });
  page.on("websocket", (socket) => own(socket.url()) || faults.push(`websocket to ${socket.url()}`));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(url);
  return { page, faults };
}

/** Waits until read() gives what check takes, and returns it. */
export async function eventually(read, check, what, timeout = 15_000) {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await read();
    if (check(value)) return value;
    if (Date.now() > end) assert.fail(`${what}: still ${JSON.stringify(value)} after ${timeout} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
