// The GraphQL-over-HTTP audits against BASE_URL, with the token of its page or
// TOKEN. All MUST have to pass; of the others the number is told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serverAudits } from "graphql-http";

const base = process.env.BASE_URL?.replace(/\/$/, "");

test("GraphQL over HTTP", { skip: base ? false : "needs BASE_URL, a running server" }, async (t) => {
  const page = await (await fetch(`${base}/api/page`)).json();
  const token = process.env.TOKEN ?? page.token;
  const fetchFn = (url, init = {}) => {
    const headers = new Headers(init.headers);
    if (token) headers.set("Authorization", `Bearer ${token}`);
    return fetch(url, { ...init, headers });
  };
  const levels = { MUST: [], SHOULD: [], MAY: [] };
  for (const audit of serverAudits({ url: `${base}/graphql`, fetchFn })) {
    const level = /^(MUST|SHOULD|MAY)/.exec(audit.name)[1];
    const { status, reason } = await audit.fn();
    levels[level].push({ name: audit.name, passed: status === "ok", reason });
  }
  for (const [level, audits] of Object.entries(levels)) {
    t.diagnostic(`${level}: ${audits.filter((a) => a.passed).length} of ${audits.length}`);
    for (const a of audits.filter((a) => !a.passed && level !== "MAY")) t.diagnostic(`  not: ${a.name}: ${a.reason}`);
  }
  assert.equal(levels.MUST.length, 13);
  assert.deepEqual(levels.MUST.filter((a) => !a.passed), []);
});
