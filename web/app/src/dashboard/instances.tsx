import { useEffect, useState } from "preact/hooks";
import { get, post, Refusal, type Instance, type Instances, type Table } from "../shared/page";
import { useFlip } from "./flip";
import { count, span, time } from "./format";
import { useNow } from "./live";
import { Notices } from "./notices";
import { Group, split } from "./tasks";

/** The instances as last told. */
export interface Cluster {
  told: Instances | undefined;
  /** When, in milliseconds since the epoch. */
  at: number;
  /** Why they could not be asked since then. */
  failed: string;
  /** Whether that is for want of any answer. */
  silent: boolean;
}

/** Asks each second how the instances are; token null: not known yet. */
export function useCluster(token: string | null): Cluster {
  const [cluster, setCluster] = useState<Cluster>({ told: undefined, at: 0, failed: "", silent: false });
  useEffect(() => {
    if (token === null) return;
    let timer: ReturnType<typeof setTimeout>;
    let ended = false;
    const poll = async () => {
      let change: Partial<Cluster>;
      try {
        change = { told: await get<Instances>("/api/instances", token), at: Date.now(), failed: "", silent: false };
      } catch (cause) {
        change = { failed: cause instanceof Error ? cause.message : String(cause), silent: !(cause instanceof Refusal) };
      }
      if (ended) return;
      setCluster((was) => ({ ...was, ...change }));
      timer = setTimeout(poll, 1_000);
    };
    void poll();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [token]);
  return cluster;
}

/** The time of the stream: how far the departures have been worked through. */
export function streamTime(cluster: Cluster): number {
  const tasks = cluster.told?.instances.flatMap((i) => i.tasks ?? []) ?? [];
  const times = tasks.filter((t) => t.stores?.length).map((t) => time(t.streamTime)).filter(Number.isFinite);
  return times.length > 0 ? Math.max(...times) : NaN;
}

/** The instances and what each of them does. */
export function InstancesPanel({ cluster, token }: { cluster: Cluster; token: string }) {
  const now = useNow();
  const grid = useFlip<HTMLDivElement>("var(--accent)");
  const instances = [...(cluster.told?.instances ?? [])].sort((a, b) => a.id.localeCompare(b.id));
  const slots = partitions(instances);
  return (
    <section class={`panel instances ${cluster.failed ? "dimmed" : ""}`} aria-labelledby="instances-title">
      <header>
        <h2 id="instances-title">Instances</h2>
        <Summary instances={instances} total={[...slots.values()].reduce((a, b) => a + b, 0)} />
        <div class="age">
          <span class={`since ${cluster.failed ? "stale" : "fresh"}`} title={cluster.failed || undefined}>
            <i class="dot" aria-hidden="true" />
            {cluster.at ? `as of ${now - cluster.at < 1_500 ? "now" : `${span(now - cluster.at)} ago`}` : "waiting for data"}
          </span>
        </div>
      </header>
      <div class="cards" ref={grid}>
        {instances.map((i) => (
          <Card key={i.id} instance={i} slots={slots} demo={cluster.told?.demo ?? false} token={token} lost={i.self && cluster.silent} />
        ))}
        {instances.length === 0 && <p class="empty">{cluster.failed ? `The instances cannot be asked: ${cluster.failed}` : "No instance has joined yet."}</p>}
      </div>
      <States />
    </section>
  );
}

function Summary({ instances, total }: { instances: Instance[]; total: number }) {
  if (instances.length === 0) return null;
  const tasks = instances.flatMap((i) => i.tasks ?? []);
  const active = tasks.filter((t) => t.role === "active");
  const running = new Set(active.filter((t) => t.state === "running").map((t) => t.task)).size;
  const copies = tasks.filter((t) => t.role !== "active");
  const following = copies.filter((t) => t.state === "following").length;
  const lag = active.reduce((sum, t) => sum + t.lag, 0);
  return (
    <p class="summary">
      <b>{instances.filter((i) => i.ready).length}</b> of {instances.length} ready, <b>{count(running)}</b> of {count(total)} tasks running
      {copies.length > 0 && (
        <>
          , <b>{count(following)}</b> of {count(copies.length)} other copies follow
        </>
      )}
      , <b>{count(lag)}</b> {lag === 1 ? "record" : "records"} behind
    </p>
  );
}

function States() {
  return (
    <ul class="legend states" aria-hidden="true">
      <li class="key task running">active</li>
      <li class="key task following">standby, warm-up or lingering</li>
      <li class="key task restoring">restoring</li>
      <li class="key task waiting">settling</li>
      <li class="key task failed">failed</li>
      <li class="key task away">held elsewhere</li>
    </ul>
  );
}

/** The subtopologies with the number of their partitions, by all instances. */
function partitions(instances: Instance[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { task } of instances.flatMap((i) => i.tasks ?? [])) {
    const [name, partition] = split(task);
    found.set(name, Math.max(found.get(name) ?? 0, partition + 1));
  }
  return new Map([...found].sort(([a], [b]) => a.localeCompare(b)));
}

interface CardProps {
  instance: Instance;
  slots: Map<string, number>;
  demo: boolean;
  token: string;
  lost: boolean;
}

const words = { lost: "no answer", stopped: "stopped", ready: "ready", apart: "out of touch", starting: "not ready" };

function stateOf(i: Instance, lost: boolean): keyof typeof words {
  if (lost || i.silent) return "lost";
  if (!i.running) return "stopped";
  if (i.live === false && !i.gateway && (i.generation ?? -1) >= 0) return "apart";
  return i.ready ? "ready" : "starting";
}

function Card({ instance, slots, demo, token, lost }: CardProps) {
  const tasks = new Map((instance.tasks ?? []).map((t) => [t.task, t]));
  const state = stateOf(instance, lost);
  const about = [instance.self ? "serves this page" : `instance ${instance.id}`, instance.gateway && "gateway alone", instance.rack && `rack ${instance.rack}`];
  return (
    <article class={`card ${state}`} aria-label={`Instance ${instance.id}`}>
      <header>
        <span class="letter" aria-hidden="true">
          {instance.gateway ? "gw" : mark(instance.id)}
        </span>
        <div class="who">
          <a href={`${location.protocol}//${instance.http}/`}>{instance.http || instance.id}</a>
          <small>{about.filter(Boolean).join(", ")}</small>
        </div>
        <span class={`state ${state}`}>{words[state]}</span>
        {demo && <Switch instance={instance} token={token} lost={lost} />}
      </header>
      {!instance.gateway && [...slots].map(([name, n]) => <Group key={name} name={name} size={n} tasks={tasks} />)}
      <Notices instance={instance} />
      {instance.tables?.map((t) => (
        <TableLine key={t.table} table={t} />
      ))}
    </article>
  );
}

/** A letter or a number that stands for an instance: "a", or 12 for "flights-12". */
function mark(id: string): string {
  return id.length <= 2 ? id : (/\d{1,2}$/.exec(id)?.[0] ?? id.slice(0, 1));
}

function Switch({ instance, token, lost }: { instance: Instance; token: string; lost: boolean }) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState("");
  const order = instance.running ? "stop" : "start";
  const send = async () => {
    setBusy(true);
    setFailed("");
    try {
      await post(`/api/instances/${encodeURIComponent(instance.id)}/${order}`, token);
    } catch (cause) {
      setFailed(cause instanceof Error ? cause.message : String(cause));
    }
    setBusy(false);
  };
  return (
    <>
      <button class="switch" disabled={busy || lost} onClick={send} aria-label={`${order} instance ${instance.id}`} title={instance.self ? "It serves this page, which will then show what it last received." : undefined}>
        {busy ? "…" : order === "stop" ? "Stop" : "Start"}
      </button>
      {failed && !lost && (
        <span class="failure" role="status">
          {failed}
        </span>
      )}
    </>
  );
}

function TableLine({ table }: { table: Table }) {
  return (
    <p class="notes table">
      table <b>{table.table}</b>: {count(table.rows)} rows, {table.state}
      {table.lag > 0 && `, ${count(table.lag)} behind`}
    </p>
  );
}
