// Invented departures of a hundred days, by airport and hour, that grow.

const hour = 3_600_000;
const day = 24 * hour;

const airports = `ATL|William B Hartsfield-Atlanta Intl|Atlanta|GA
DFW|Dallas-Fort Worth International|Dallas-Fort Worth|TX
ORD|Chicago O'Hare International|Chicago|IL
LAX|Los Angeles International|Los Angeles|CA
PHX|Phoenix Sky Harbor International|Phoenix|AZ
STL|Lambert-St Louis International|St Louis|MO
LAS|McCarran International|Las Vegas|NV
DTW|Detroit Metropolitan-Wayne County|Detroit|MI
IAH|George Bush Intercontinental|Houston|TX
MSP|Minneapolis-St Paul Intl|Minneapolis|MN
SFO|San Francisco International|San Francisco|CA
PHL|Philadelphia Intl|Philadelphia|PA
BOS|Gen Edw L Logan Intl|Boston|MA
SEA|Seattle-Tacoma Intl|Seattle|WA
BWI|Baltimore-Washington International|Baltimore|MD`
  .split("\n")
  .map((line) => line.split("|"));

/** A small generator of numbers in [0, 1), the same for each start. */
function random(seed) {
  return () => {
    seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return seed / 4_294_967_296;
  };
}

export function flights(rows) {
  const next = random(7);
  const hours = new Map(); // origin → start of hour → delays
  const lag = 30 * 60_000; // how far the stream's time is behind the clock
  let wake = [];
  let at = Date.now();

  const add = (origin, when) => {
    const late = next() < 0.22;
    const delay = Math.round(late ? 15 + next() ** 2 * 140 : -8 + next() * 18);
    const start = Math.floor(when / hour) * hour;
    if (!hours.has(origin)) hours.set(origin, new Map());
    const of = hours.get(origin);
    if (!of.has(start)) of.set(start, []);
    of.get(start).push(delay);
    last.set(origin, Math.max(last.get(origin) ?? 0, when));
  };
  const last = new Map();
  const shown = airports.slice(0, Math.min(rows, airports.length));
  shown.forEach(([origin], i) => {
    for (let n = 0; n < 1_100 / (1 + i * 0.09); n++) add(origin, at - lag - 100 * day * next() ** 1.1);
  });

  const row = (origin) => {
    const of = hours.get(origin);
    if (!of) return null;
    const delays = [...of.values()].flat();
    const sum = delays.reduce((a, b) => a + b, 0);
    const delayed = delays.filter((d) => d > 15).length;
    const [, name, city, state] = airports.find(([iata]) => iata === origin);
    return {
      id: origin,
      origin,
      flights: delays.length,
      delayed,
      delayMinutes: sum,
      averageDelay: sum / delays.length,
      worstDelay: Math.max(...delays),
      lastDeparture: new Date(last.get(origin)).toISOString(),
      delayedShare: delayed / delays.length,
      airport: { iata: origin, name, city, state, latitude: 0, longitude: 0 },
    };
  };

  return {
    row,
    size: () => hours.size,
    top: (first) => [...hours.keys()].map(row).sort((a, b) => b.delayMinutes - a.delayMinutes).slice(0, first),
    series({ origin, from, to, last: span, step }) {
      const length = step === "1d" ? day : hour;
      const until = to ? Date.parse(to) : Date.now();
      const since = from ? Date.parse(from) : until - Number.parseInt(span) * (span.endsWith("d") ? day : hour);
      const list = [];
      for (let start = Math.floor(since / length) * length; start < until; start += length) list.push(window(origin, start, length));
      return list;
    },
    /** A departure or two. */
    tick() {
      at = Date.now();
      for (let n = next() < 0.4 ? 2 : 1; n > 0 && shown.length > 0; n--) add(shown[Math.floor(next() * shown.length)][0], at - lag);
      wake.forEach((resolve) => resolve());
      wake = [];
    },
    changed: () => new Promise((resolve) => wake.push(resolve)),
    streamTime: () => at - lag,
  };

  function window(origin, start, length) {
    const delays = [];
    for (let h = start; h < start + length; h += hour) delays.push(...(hours.get(origin)?.get(h) ?? []));
    delays.sort((a, b) => a - b);
    const some = delays.length > 0;
    return {
      id: `${origin}:${start}`,
      origin,
      start: new Date(start).toISOString(),
      end: new Date(start + length).toISOString(),
      final: start + length + hour / 2 <= at - lag,
      flights: delays.length,
      averageDelay: some ? delays.reduce((a, b) => a + b, 0) / delays.length : null,
      p95Delay: some ? delays[Math.min(delays.length - 1, Math.floor(delays.length * 0.95))] : null,
    };
  }
}
