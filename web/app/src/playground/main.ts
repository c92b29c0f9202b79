import "graphiql/setup-workers/vite";
// The style sheets one by one: together they would bring in fonts.
import "@graphiql/react/style.css";
import "@graphiql/plugin-doc-explorer/style.css";
import "@graphiql/plugin-history/style.css";
import "graphiql/graphiql.css";
import "./style.css";

import { GraphiQL } from "graphiql";
import { createElement as h } from "react";
import { createRoot } from "react-dom/client";
import { get, type Page } from "../shared/page";
import { fieldsOf } from "../shared/schema";
import { examples } from "./examples";
import { fetcherWith } from "./fetcher";
import { SafeStorage } from "./storage";

const root = createRoot(document.getElementById("app")!);

async function start(): Promise<void> {
  let page: Page;
  try {
    page = await get<Page>("/api/page");
  } catch (cause) {
    root.render(h("p", { className: "away" }, "The server does not answer. Trying again …"));
    setTimeout(start, 1_500);
    console.warn(cause);
    return;
  }
  const fields = await fieldsOf(page, page.token ?? "").catch(() => null);
  const own: Record<string, string> = page.auth === "off" ? {} : { Authorization: `Bearer ${page.token ?? ""}` };
  const headers = JSON.stringify(own, null, 2);
  root.render(
    h(
      GraphiQL,
      {
        fetcher: fetcherWith(own),
        storage: new SafeStorage(localStorage, page.app),
        defaultTabs: examples(page, fields).map((query) => ({ query, headers })),
        // Those of tabs remembered without theirs.
        defaultHeaders: headers,
        defaultQuery: "",
        shouldPersistHeaders: false,
        showPersistHeadersSettings: false,
        defaultEditorToolsVisibility: "headers",
      },
      h(GraphiQL.Logo, null, h("a", { href: "../", className: "home" }, h("b", null, "Streamgauge"), ` ${page.title}`)),
    ),
  );
}

void start();
