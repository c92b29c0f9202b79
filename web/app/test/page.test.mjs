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

/** Three instances and a gateway alone with all that may be wrong. */
const wrong = {
  demo: false,
  trouble: {
    gateway: true,
    silent: ["c"],
    rack: { a: "zone-1" },
    breakers: { gateway: { a: "closed", c: "open" }, a: { b: "half-open" } },
    restoring: { "flights-by-origin_0": 0.25 },
    tasks: {
      "flights-by-origin_3": { note: "checkpoint failed: write state.db: no space left on device" },
      "flights-by-origin_1": { state: "failed", error: "input flights was created anew" },
      "flights_1": { note: "flights [1] is held up at offset 1042 by the transaction of producer 7" },
      "flights_4": { state: "in-doubt" },
    },
  },
};

test("a gateway alone tells of every instance: what it restores, what is wrong, and who does not answer", async (t) => {
  const mock = await mockOf(t, { instances: wrong });
  const { page, faults } = await dashboard(t, {}, mock.url);
  const card = (name) => page.getByRole("article", { name: `Instance ${name}` });
  await card("gateway-7d4b9").getByText("breaker to c: open").waitFor();
  await card("gateway-7d4b9").getByText("It keeps no tasks").waitFor();
  await card("a").getByText("rack zone-1").waitFor();
  await card("a").getByText("breaker to b: half-open").waitFor();
  await card("a").getByText("75K of 300K, 50K/s, 5 s left").waitFor();
  assert.equal(await card("a").getByRole("progressbar", { name: "Restore of flights-by-origin_0" }).evaluate((p) => p.value), 0.25);
  await card("a").locator(".notes li", { hasText: "no space left on device" }).waitFor();
  await card("b").locator(".notes li", { hasText: "failed: input flights was created anew" }).waitFor();
  await card("b").locator(".notes li", { hasText: "held up at offset 1042" }).waitFor();
  await card("b").locator(".notes li", { hasText: "flights_4 in-doubt" }).waitFor();
  await card("c").getByText("no answer", { exact: true }).waitFor();
  await card("c").getByText("it does not answer within 800ms").waitFor();
  assert.equal(await card("c").locator(".task.unknown").count(), 6);
  assert.equal(await page.locator(".switch").count(), 0);
  assert.match(await page.locator(".summary").textContent(), /1 of 4 ready, 5 of 12 tasks running, 4 of 6 other copies follow/);

  await card("a").getByRole("button", { name: /flights-by-origin/ }).click();
  const rows = card("a").getByRole("region", { name: "Tasks one by one" }).locator("tbody tr");
  assert.deepEqual(await rows.evaluateAll((all) => all.map((r) => [...r.children].slice(0, 3).map((c) => c.textContent).join(" "))), [
    "0 active restoring 25 %", "2 standby following", "3 active running", "5 standby following",
  ]);
  assert.deepEqual(faults, []);
});

for (const width of [1280, 390]) {
  test(`hundreds of tasks fit into ${width} px`, async (t) => {
    const ids = Array.from({ length: 5 }, (_, i) => `flights-${i}`);
    const restoring = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`flights-by-origin_${i * 5}`, 0.5]));
    const mock = await mockOf(t, { instances: { demo: false, partitions: 300, ids, trouble: { restoring } } });
    const { page, faults } = await dashboard(t, { width }, mock.url);
    const card = page.getByRole("article", { name: "Instance flights-0" });
    await card.getByText("60 active, 60 standby of 300").waitFor();
    await card.getByText("40 tasks", { exact: true }).waitFor();
    await card.getByText("6M of 12M, 2M/s, 3 s left").waitFor();
    assert.equal(await page.getByRole("article", { name: "Instance flights-1" }).getByText("All its tasks are running.").count(), 1);
    assert.match(await page.locator(".summary").textContent(), /560 of 600 tasks running, 300 of 300 other copies follow/);
    await card.getByRole("button", { name: /^flights 60/ }).click();
    await card.getByRole("region", { name: "Tasks one by one" }).waitFor();
    const [content, height] = await page.evaluate(() => [document.documentElement.scrollWidth, document.querySelector(".card").offsetHeight]);
    assert.ok(content <= width, `${content} px on ${width}`);
    assert.ok(height < 1_000, `a card is ${height} px high`);
    assert.deepEqual(faults, []);
  });
}

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
