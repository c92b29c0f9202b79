// The two pages in a browser, against BASE_URL or, without it, a mock.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, launch, mockOf, open, server } from "./browser.mjs";

let browser;
let base;

before(async () => {
  browser = await launch();
  base = await server();
});
after(async () => {
  await browser?.close();
  await base?.close();
});

const row = ".ranking li button";
const chart = ".selected .chart[role=group]";
const label = (page) => page.locator(chart).getAttribute("aria-label");

/** Opens the dashboard and waits for its data. */
async function dashboard(t, options, url = base.url) {
  const opened = await open(t, browser, `${url}/`, options);
  await opened.page.locator(row).first().waitFor({ timeout: 30_000 });
  await opened.page.locator(chart).waitFor({ timeout: 30_000 });
  return opened;
}

test("the ranking shows airports with names, in order", async (t) => {
  const { page, faults } = await dashboard(t);
  const rows = await page.locator(row).evaluateAll((buttons) =>
    buttons.map((b) => ({
      code: b.querySelector(".code").textContent,
      name: b.querySelector(".name").textContent,
      minutes: Number(b.querySelector(".minutes").textContent.replaceAll(",", "")),
    })),
  );
  assert.equal(rows.length, 10);
  for (const { code, name } of rows) {
    assert.match(code, /^[A-Z0-9]{3}$/);
    assert.ok(name.length > 3 && name !== "Unknown airport", `${code} is called ${name}`);
  }
  const minutes = rows.map((r) => r.minutes);
  assert.deepEqual(minutes, minutes.toSorted((a, b) => b - a));
  await page.locator(".connection.live").waitFor();
  assert.deepEqual(faults, []);
});

test("selecting an airport changes its panel and its chart", async (t) => {
  const { page, faults } = await dashboard(t);
  const second = await page.locator(`${row} .code`).nth(1).textContent();
  const bars = () => page.locator(`${chart} rect.bar`).evaluateAll((all) => all.map((b) => b.getAttribute("y")).join());
  const drawn = await bars();
  await page.locator(row, { hasText: second }).first().click();
  await eventually(() => page.locator("#airport-title .code").textContent(), (code) => code === second, "title");
  await eventually(() => label(page), (text) => text?.startsWith(`${second},`), "chart");
  await eventually(bars, (now) => now !== drawn && now.length > 0, "bars");
  assert.equal(await page.locator(row, { hasText: second }).first().getAttribute("aria-pressed"), "true");

  await page.getByText("90 d", { exact: true }).click();
  await eventually(() => label(page), (text) => text?.includes("90 days"), "range");
  assert.match(page.url(), new RegExp(`#${second}/90d$`));
  assert.deepEqual(faults, []);
});

test("the keyboard suffices", async (t) => {
  const { page } = await dashboard(t);
  await page.locator(row).first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const focused = await page.evaluate(() => document.activeElement.querySelector(".code").textContent);
  await page.keyboard.press("Enter");
  await eventually(() => page.locator("#airport-title .code").textContent(), (code) => code === focused, "title");
  await page.locator(chart).focus();
  await page.keyboard.press("End");
  assert.match(await page.locator(`${chart} [aria-live]`).textContent(), /flights, average delay/);
  await page.keyboard.press("Escape");
  assert.equal((await page.locator(`${chart} [aria-live]`).textContent()).trim(), "");
});

test("an airport beyond the ranking is found by its code, and one that is none says so", async (t) => {
  const { page } = await dashboard(t);
  await page.fill("#finder", "sea");
  await page.keyboard.press("Enter");
  await eventually(() => page.locator("#airport-title .name").textContent(), (name) => /Seattle/.test(name), "name");
  await page.fill("#finder", "QQQ");
  await page.keyboard.press("Enter");
  await page.getByText("No departures from QQQ have been counted.").waitFor();
});

test("each panel says how fresh it is, and the instances what they do", async (t) => {
  const { page } = await dashboard(t);
  for (const panel of [".ranking", ".selected"]) {
    await eventually(() => page.locator(`${panel} .since`).textContent(), (text) => /^(as of (now|\d+ s ago)|unchanged for \d+ (s|min))$/.test(text), panel);
  }
  await page.locator(".card").first().waitFor();
  assert.ok((await page.locator(".card .task:not(.away)").count()) > 0, "no task is shown");
  assert.match(await page.locator(".summary").textContent(), /\d+ of \d+ tasks running/);
});

test("dark and light follow the system until one is chosen", async (t) => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await dashboard(t, { scheme: "light" });
  const bright = await ground(light.page);
  const { page } = await dashboard(t, { scheme: "dark" });
  const dark = await ground(page);
  assert.notEqual(dark, bright);
  await page.getByRole("button", { name: "Go to the light theme" }).click();
  assert.equal(await ground(page), bright);
  await page.reload();
  await page.locator(row).first().waitFor();
  assert.equal(await ground(page), bright);
  await page.getByRole("button", { name: "Go to the dark theme" }).click();
  assert.equal(await ground(page), dark);
});

for (const width of [320, 390, 768]) {
  test(`nothing is wider than a screen of ${width} px`, async (t) => {
    const { page, faults } = await dashboard(t, { width, height: 844 });
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(content <= screen, `${content} px on ${screen}`);
    assert.deepEqual(faults, []);
  });
}

test("the playground runs a query and a subscription, and keeps no token", async (t) => {
  const { page, faults } = await open(t, browser, `${base.url}/playground/`);
  const run = page.locator(".graphiql-execute-button");
  const answer = () => page.locator(".graphiql-response .view-lines").textContent();
  const { token } = await (await fetch(`${base.url}/api/page`)).json();
  // The headers come last: then the editors are whole.
  const ready = () => eventually(() => page.locator(".graphiql-editors").innerText(), (text) => (!token || /Bearer/.test(text)) && /topAirports/.test(text), "editors", 30_000);
  const tabs = () => page.locator(".graphiql-tab").count();
  await ready();
  assert.equal(await tabs(), 4);
  await run.click();
  await eventually(answer, (text) => /"topAirports"/.test(text.replaceAll("\u00a0", " ")), "answer");

  await page.getByRole("tab", { name: "Watch" }).or(page.locator(".graphiql-tab-button", { hasText: "Watch" })).first().click();
  // The editor reads a tab's operations a moment after showing it, and remembers the tab after that.
  const remembered = () => page.evaluate(() => JSON.parse(localStorage.getItem("flights:graphiql:tabState")).activeTabIndex);
  await eventually(remembered, (index) => index === 2, "tab");
  await run.click();
  await eventually(answer, (text) => /"rows"/.test(text), "event");
  await run.click(); // stops it

  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.match(kept, /tabState/);
  assert.doesNotMatch(kept, /bearer/i);
  if (token) assert.ok(!kept.includes(token), "the token is kept");

  await page.reload();
  await ready();
  assert.equal(await tabs(), 4);
  await run.click();
  await eventually(answer, (text) => /"rows"/.test(text), "answer after loading the page again");
  assert.deepEqual(faults, []);
});

test("the dashboard outlives its server", async (t) => {
  let mock = await mockOf(t);
  const { page } = await dashboard(t, {}, mock.url);
  const first = await page.locator(row).first().textContent();
  await mock.close();
  await page.locator(".connection.away").waitFor();
  await page.locator("aside.lost").waitFor();
  await page.locator("aside.lost", { hasText: "Instance a, which serves this page, does not answer" }).waitFor();
  assert.equal(await page.locator(row).first().textContent(), first);
  await page.locator(".ranking .since.stale").waitFor();

  mock = await mockOf(t, { port: mock.port });
  await page.locator(".connection.live").waitFor({ timeout: 30_000 });
  await page.locator("aside.lost").waitFor({ state: "detached" });
  await page.locator(".ranking .since:not(.stale)").waitFor();
});

test("errors carry their code, and go away by themselves", async (t) => {
  const mock = await mockOf(t, { fail: "VIEW_RESTORING", rows: 5 });
  const { page } = await open(t, browser, mock.url);
  await page.locator(".ranking .failure", { hasText: "VIEW_RESTORING the view is being restored" }).waitFor();
  mock.world.fail = "";
  await eventually(() => page.locator(row).count(), (n) => n === 5, "rows", 30_000);
  assert.equal(await page.locator(".ranking .failure").count(), 0);
});

test("what is forbidden is said, what is not is shown", async (t) => {
  const mock = await mockOf(t, { limited: true });
  const { page, faults } = await dashboard(t, {}, mock.url);
  await page.locator(".ranking .failure", { hasText: "FORBIDDEN" }).waitFor();
  await page.locator(".ranking .since:not(.stale)").waitFor();
  assert.equal(await page.locator(row).count(), 10);
  assert.equal(await page.locator(`${row} .name`).first().textContent(), "Unknown airport");
  assert.deepEqual(faults, []);
});

test("no rows, and a token that has to be typed in", async (t) => {
  const mock = await mockOf(t, { rows: 0, auth: "jwt" });
  const { page } = await open(t, browser, mock.url);
  await page.getByText("The server asks for a valid token").waitFor();
  await page.fill("#token", mock.token);
  await page.getByRole("button", { name: "Use" }).click();
  await page.getByText("No departures yet.").waitFor();
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes(mock.token), "the token is kept");
});

test("partial answers say what is missing; a stopped instance loses its tasks", async (t) => {
  const mock = await mockOf(t, { partial: true });
  const { page, faults } = await dashboard(t, {}, mock.url);
  await page.locator(".ranking summary", { hasText: "partial: 1 missing" }).click();
  await page.locator(".ranking .missing", { hasText: "partition 4 restoring" }).waitFor();
  await page.getByRole("button", { name: "stop instance b" }).click();
  await page.getByRole("article", { name: "Instance b" }).getByText("stopped", { exact: true }).waitFor();
  const b = page.getByRole("article", { name: "Instance b" });
  assert.equal(await b.locator(".task:not(.away)").count(), 0);
  await page.locator(".card .task.restoring").first().waitFor();
  await page.getByRole("button", { name: "start instance b" }).click();
  await eventually(() => b.locator(".task:not(.away)").count(), (n) => n > 0, "tasks of b");
  assert.deepEqual(faults, []);
});

/** The operations that a page sends by its websockets. */
function sent(page) {
  const queries = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => queries.push(String(payload))));
  return () => queries.filter((q) => /"subscribe"/.test(q));
}

for (const width of [1280, 390]) {
  test(`an application without departures has a dashboard too, at ${width} px`, async (t) => {
    const mock = await mockOf(t, { app: "shop" });
    const { page, faults } = await open(t, browser, mock.url, { width });
    const operations = sent(page);
    await page.reload();
    await page.locator(".connection.live").waitFor();
    await page.locator(".card").first().waitFor();
    const answers = page.locator(".answers");
    await answers.getByText("This application's answers are in the playground").waitFor();
    await answers.locator("li", { hasText: "topCustomers" }).waitFor();
    assert.deepEqual(await answers.locator("li").allTextContents(), ["customerTotals", "topCustomers"]);
    assert.deepEqual(await answers.locator("h3").allTextContents(), ["Queries"]);
    assert.equal(await page.locator(".ranking, .selected, .failure").count(), 0);
    const [panel, main] = await page.evaluate(() => [".instances", "main"].map((s) => document.querySelector(s).getBoundingClientRect().width));
    assert.ok(Math.abs(panel - main) < 1, `${panel} px of ${main}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "wider than the screen");
    assert.deepEqual(operations(), []);
    await answers.getByRole("link").click();
    await page.locator(".graphiql-container").waitFor({ timeout: 30_000 });
    assert.deepEqual(faults, []);
  });
}

test("without introspection the application's name decides on the panels", async (t) => {
  const closed = { introspection: false };
  await dashboard(t, {}, (await mockOf(t, closed)).url);
  const { page, faults } = await open(t, browser, (await mockOf(t, { ...closed, app: "shop" })).url);
  await page.locator(".card").first().waitFor();
  await page.locator(".answers .note").waitFor();
  assert.equal(await page.locator(".ranking, .selected, .failure, .answers li").count(), 0);
  assert.deepEqual(faults, []);
});

for (const { name, query, shown } of [
  { name: "the server's query", query: "{ topCustomers(first: 3) { customer spent } }", shown: /topCustomers\(first: 3\)/ },
  { name: "a query that any schema answers", query: "", shown: /__typename[^]*Queries:[^]*customerTotals[^]*topCustomers/ },
]) {
  test(`without departures the playground begins with ${name}`, async (t) => {
    const mock = await mockOf(t, { app: "shop", query });
    const { page, faults } = await open(t, browser, `${mock.url}/playground/`);
    const plain = (selector) => page.locator(selector).first().innerText().then((text) => text.replaceAll("\u00a0", " "));
    await eventually(() => plain(".graphiql-editors"), (text) => /Bearer/.test(text) && shown.test(text), "editors", 30_000);
    assert.ok((await page.locator(".graphiql-tab").count()) <= 1, "more than one tab");
    await page.locator(".graphiql-execute-button").click();
    await eventually(() => plain(".graphiql-response .view-lines"), (text) => /"data"/.test(text) && !/"errors"/.test(text), "answer");
    assert.equal(await page.locator(".squiggly-error").count(), 0);
    assert.deepEqual(faults, []);
  });
}
