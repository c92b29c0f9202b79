// node flights.mjs IN.parquet OUT.jsonl
//
// Writes the departures of vega-datasets 3.2.1's flights-3m.parquet as JSON
// lines. The file's digest and some answers are known; others are an error, and
// nothing is written then.
import { createHash } from 'node:crypto'
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { decompress } from 'fzstd'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'

const digest = 'dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0'
const known = { departures: 3_000_000, airports: 229, fromATL: 124_711, delay: 20_003_603, distance: 2_194_861_208 }

const [input, output] = process.argv.slice(2)
const got = createHash('sha256').update(readFileSync(input)).digest('hex')
if (got !== digest) {
  throw new Error(`${input} has the digest ${got}, not ${digest}`)
}

const file = await asyncBufferFromFile(input)
const compressors = { ZSTD: bytes => decompress(bytes) }
const { row_groups } = await parquetMetadataAsync(file)
const found = { departures: 0, airports: 0, fromATL: 0, delay: 0, distance: 0 }
const airports = new Set()
const out = openSync(`${output}.part`, 'w')
let at = 0
for (const group of row_groups) {
  const rowStart = found.departures
  const rows = await parquetReadObjects({ file, compressors, rowStart, rowEnd: rowStart + Number(group.num_rows) })
  let lines = ''
  for (const r of rows) {
    if (r.date.getTime() < at) {
      throw new Error(`departure ${found.departures} is earlier than the one before it`)
    }
    at = r.date.getTime()
    const row = { date: r.date.toISOString(), origin: r.origin, destination: r.destination, delay: Number(r.delay), distance: Number(r.distance) }
    lines += JSON.stringify(row) + '\n'
    airports.add(row.origin)
    found.departures++
    found.fromATL += row.origin === 'ATL' ? 1 : 0
    found.delay += row.delay
    found.distance += row.distance
  }
  writeSync(out, lines)
}
closeSync(out)
found.airports = airports.size
if (JSON.stringify(found) !== JSON.stringify(known)) {
  rmSync(`${output}.part`)
  throw new Error(`found ${JSON.stringify(found)}, and ${JSON.stringify(known)} is known`)
}
renameSync(`${output}.part`, output)
