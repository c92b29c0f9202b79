// The public schema of the example application: what it serves to clients.
import { readFileSync } from "node:fs";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

/** The annotated schema without its directives; clients have @read alone. */
export const sdl = strip(`${read("../../../schema.graphqls")}\n${read("../../../graph/streamgauge.graphqls")}`);

function strip(text) {
  return text
    .replace(/^(?:"[^"\n]*"\n)?directive @(?!read\b).*$/gm, "")
    .replace(/(?<!directive) @\w+(?:\((?:[^()"]|"(?:[^"\\]|\\.)*")*\))?/g, "");
}
