// A stand-in for an instance: the same paths and protocol, invented numbers that
// move. It serves the built pages too. `npm run mock`, or createMock() in tests.
//
//   PORT=8090 MOCK_APP=shop MOCK_ROWS=0|5|… MOCK_FAIL=CODE MOCK_AUTH=jwt MOCK_PARTIAL=1

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";
import { buildSchema, graphql, NoSchemaIntrospectionCustomRule, parse, subscribe, validate } from "graphql";
import { flights } from "./flights.mjs";
import { cluster } from "./cluster.mjs";
import { sdl } from "./schema.mjs";
import { shop } from "./shop.mjs";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".ttf": "font/ttf" };

/** The policies of the Go package, so that what they forbid fails here too. */
const policy = {
  dashboard: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  playground:
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
};

/** The applications there are: one with panels of the dashboard's, and one without. */
const apps = {
  flights: {
    title: "Departures",
    sdl,
    query: "{ topAirports(first: 5) { rows { origin flights } } }",
    work: { stores: { flights: [], "flights-by-origin": ["airport-totals", "airport-hour"] }, table: "airport" },
    resolvers,
  },
  shop,
};

/** Starts a mock; close ends it and cuts its connections. */
export async function createMock({ port = 0, app = "flights", query = apps[app].query, introspection = true, rows = 40, fail = "", auth = "dev", partial = false, limited = false, instances = {} } = {}) {
  const token = "mock-token-of-the-viewer";
  const world = { flights: flights(rows), cluster: cluster(apps[app].work, instances), fail, partial, limited };
  const schema = buildSchema(apps[app].sdl);
  const root = apps[app].resolvers(world);
  const allowed = (header) => auth === "off" || header === `Bearer ${token}`;

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://mock");
    const json = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (pathname === "/api/page") return json(200, { app, title: apps[app].title, auth, ...(auth === "dev" && { token }), demo: true, instance: "a", query });
    if (pathname === "/api/instances" && !allowed(request.headers.authorization)) return json(401, { errors: [{ message: "needs a token" }] });
    if (pathname === "/api/instances") return json(200, { demo: world.cluster.demo, instances: world.cluster.told(server.address().port) });
    const order = /^\/api\/instances\/(\w+)\/(stop|start)$/.exec(pathname);
    if (order && request.method === "POST") {
      if (!allowed(request.headers.authorization)) return json(401, { errors: [{ message: "needs a token" }] });
      world.cluster[order[2]](order[1]);
      return json(200, {});
    }
    if (pathname === "/graphql") {
      if (!allowed(request.headers.authorization)) return json(401, { errors: [{ message: "needs a token", extensions: { code: "UNAUTHENTICATED" } }] });
      const body = JSON.parse(await text(request));
      const refused = introspection ? [] : validate(schema, parse(body.query), [NoSchemaIntrospectionCustomRule]);
      if (refused.length > 0) return json(200, { errors: refused });
      return json(200, await graphql({ schema, source: body.query, rootValue: root, variableValues: body.variables, operationName: body.operationName }));
    }
    file(pathname, response);
  });
  sockets(server, { schema, root, allowed, world });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const ticker = setInterval(() => world.flights.tick(), 700);
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    port: server.address().port,
    world,
    token,
    async close() {
      if (!server.listening) return;
      clearInterval(ticker);
      server.sockets.clients.forEach((c) => c.terminate());
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function resolvers(world) {
  const f = world.flights;
  const guard = (read) => (args) => {
    if (!world.fail) return read(args);
    throw Object.assign(new Error("the view is being restored, about 12 s left"), { extensions: { code: world.fail, retryAfterMs: 1_500 } });
  };
  const fresh = () => ({
    asOf: new Date().toISOString(),
    lag: 3,
    standby: world.partial,
    partial: world.partial,
    missing: world.partial ? [{ partition: 4, reason: "restoring, 12 s left" }] : [],
    token: "mock",
  });
  const deny = () => {
    throw Object.assign(new Error("forbidden"), { extensions: { code: "FORBIDDEN" } });
  };
  const totals = ({ origin }) => {
    const row = f.row(origin);
    return row && { ...row, ...(world.limited && { airport: deny }), hours: (a) => f.series({ origin, ...a }), freshness: fresh() };
  };
  return {
    airportTotals: guard(totals),
    airportTotalsOf: guard(({ origins }) => origins.map((origin) => totals({ origin }))),
    airportTotalsPage: guard(({ first }) => ({ edges: f.top(first).map((node) => ({ node: totals(node), cursor: node.origin })), pageInfo: { hasNextPage: false, hasPreviousPage: false }, freshness: fresh() })),
    airportCount: guard(() => f.size()),
    topAirports: guard(({ first }) => ({ rows: f.top(first).map(totals), freshness: fresh() })),
    leastPunctual: guard(({ first }) => f.top(first).map(totals)),
    airportHours: guard((args) => f.series(args)),
    busiestAirports: guard(() => []),
    airportPeriod: guard(() => null),
  };
}

function sockets(server, { schema, root, allowed, world }) {
  server.sockets = new WebSocketServer({ server, path: "/graphql", handleProtocols: () => "graphql-transport-ws" });
  server.sockets.on("connection", (socket) => {
    const running = new Map();
    const send = (message) => socket.send(JSON.stringify(message));
    socket.on("close", () => running.forEach((stop) => stop()));
    socket.on("message", async (data) => {
      const { type, id, payload } = JSON.parse(String(data));
      if (type === "connection_init") {
        if (!allowed(payload?.Authorization)) return socket.close(4401, "Unauthorized");
        return send({ type: "connection_ack" });
      }
      if (type === "ping") return send({ type: "pong" });
      if (type === "complete") return running.get(id)?.();
      if (type !== "subscribe") return;
      await run({ payload, id, send, running, schema, root, world });
    });
  });
}

async function run({ payload, id, send, running, schema, root, world }) {
  const document = parse(payload.query);
  if (document.definitions[0].operation !== "subscription") {
    send({ type: "next", id, payload: await graphql({ schema, source: payload.query, rootValue: root, variableValues: payload.variables }) });
    return send({ type: "complete", id });
  }
  const field = document.definitions[0].selectionSet.selections[0].name.value;
  // Each event is the means to read the field anew.
  const rootValue = { ...root, [field]: () => events(world.flights, { [field]: root[field] }) };
  const answer = await subscribe({ schema, document, rootValue, variableValues: payload.variables });
  if (!(Symbol.asyncIterator in answer)) return send({ type: "error", id, payload: answer.errors });
  running.set(id, () => {
    running.delete(id);
    void answer.return();
  });
  for await (const result of answer) {
    if (!running.has(id)) return;
    if (result.errors && !result.data?.[field]) {
      running.delete(id);
      return send({ type: "error", id, payload: result.errors });
    }
    send({ type: "next", id, payload: result });
  }
}

/** An event at once, then one after each change. */
async function* events(source, event) {
  for (;;) {
    const changed = source.changed();
    yield event;
    await changed;
  }
}

function file(pathname, response) {
  if (pathname === "/playground") return response.writeHead(307, { location: "/playground/" }).end();
  const page = pathname.startsWith("/playground/") ? "playground" : "dashboard";
  const path = join(dist, page, normalize(pathname.replace(/^\/playground/, "")));
  const found = [path, join(path, "index.html")].find((p) => existsSync(p) && statSync(p).isFile());
  if (!found) return response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
  response.writeHead(200, { "content-type": types[extname(found)] ?? "application/octet-stream", "content-security-policy": policy[page] });
  createReadStream(found).pipe(response);
}

async function text(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { PORT, MOCK_APP, MOCK_ROWS, MOCK_FAIL, MOCK_AUTH, MOCK_PARTIAL } = process.env;
  const mock = await createMock({ port: Number(PORT ?? 8090), app: MOCK_APP, rows: Number(MOCK_ROWS ?? 40), fail: MOCK_FAIL, auth: MOCK_AUTH, partial: Boolean(MOCK_PARTIAL) });
  console.log(mock.url);
}
