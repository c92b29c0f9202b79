import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Client, socketURL, unconnected, type Status } from "../shared/client";
import { bearer, get, type Page } from "../shared/page";
import { fieldsOf, serves, type Fields } from "../shared/schema";
import { AnswersPanel } from "./answers";
import { Flights } from "./flights";
import { Header } from "./header";
import { InstancesPanel, streamTime, useCluster, type Cluster } from "./instances";
import { useNow } from "./live";
import { rootFields } from "./queries";

/** The whole dashboard. */
export function App() {
  const { client, page, status, token, setToken } = useServer();
  const bearing = token || page?.token || "";
  const cluster = useCluster(page ? bearing : null);
  const fields = useFields(page, bearing);
  const at = streamTime(cluster);
  return (
    <>
      <Header page={page} status={status} streamTime={at} needsToken={page?.auth === "jwt"} token={token} setToken={setToken} />
      {page && (
        <main>
          {serves(page, fields, rootFields) ? (
            <Flights client={client} connected={status.state === "live"} streamTime={at} />
          ) : (
            <AnswersPanel fields={fields} />
          )}
          <InstancesPanel cluster={cluster} token={bearing} />
        </main>
      )}
      <Lost status={status} cluster={cluster} page={page} retry={() => client.retry()} />
    </>
  );
}

/** The connection. A token typed in is kept in memory alone. */
function useServer() {
  const [page, setPage] = useState<Page>();
  const [status, setStatus] = useState<Status>(unconnected);
  const [token, keepToken] = useState("");
  const held = useRef("");
  const client = useMemo(() => {
    const payload = async () => {
      // Asked before each connection: a token of before may have run out.
      const told = await get<Page>("/api/page");
      setPage(told);
      return bearer(held.current || told.token || "");
    };
    return new Client({ url: socketURL(), payload, onStatus: setStatus });
  }, []);
  const setToken = (text: string) => {
    held.current = text.trim().replace(/^Bearer\s+/i, "");
    keepToken(held.current);
    client.reconnect();
  };
  return { client, page, status, token, setToken };
}

const askAgain = 2_000;

/** What the application can be asked; null: not known, or not told. */
function useFields(page: Page | undefined, token: string): Fields | null {
  const [fields, setFields] = useState<Fields | null>(null);
  useEffect(() => {
    if (!page) return;
    let timer: ReturnType<typeof setTimeout>;
    let ended = false;
    const ask = async () => {
      try {
        const told = await fieldsOf(page, token);
        if (told && !ended) setFields(told);
      } catch {
        if (!ended) timer = setTimeout(ask, askAgain);
      }
    };
    void ask();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [page?.auth, token]);
  return fields;
}

interface LostProps {
  status: Status;
  cluster: Cluster;
  page: Page | undefined;
  retry: () => void;
}

/** Says that nothing comes any more, what is done about it, and where to go. */
function Lost({ status, cluster, page, retry }: LostProps) {
  const now = useNow(500);
  if (status.state === "live" || (status.attempt < 2 && status.state === "connecting")) return null;
  const self = cluster.told?.instances.find((i) => i.self);
  const away = cluster.silent || (self !== undefined && !self.running);
  const others = away ? (cluster.told?.instances.filter((i) => !i.self && i.running) ?? []) : [];
  const wait = Math.max(0, Math.ceil((status.retryAt - now) / 1_000));
  return (
    <aside class="lost" aria-label="Connection">
      <p>
        <b role="status">{happened(status, cluster, self?.id ?? page?.instance, self?.running ?? true)}</b> {status.seen && "The numbers are the last ones received."}
      </p>
      <p>
        {status.state === "waiting" ? `Attempt ${status.attempt + 1} in ${wait} s.` : `Attempt ${status.attempt} …`}{" "}
        <button onClick={retry} disabled={status.state !== "waiting"}>
          Try now
        </button>
        {others.map((i) => (
          <a key={i.id} href={`${location.protocol}//${i.http}/${location.hash}`}>
            Go to instance {i.id}
          </a>
        ))}
      </p>
    </aside>
  );
}

function happened(status: Status, cluster: Cluster, id: string | undefined, running: boolean): string {
  if (!running) return `Instance ${id}, which serves this page, is stopped.`;
  if (cluster.silent && id) return `Instance ${id}, which serves this page, does not answer.`;
  if (status.refused) return `The server asks for a valid token${status.reason ? ` (${status.reason})` : ""}.`;
  return `The connection is lost${status.reason ? ` (${status.reason})` : ""}.`;
}
