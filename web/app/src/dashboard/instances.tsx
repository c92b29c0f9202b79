import { useEffect, useState } from "preact/hooks";
import { get, post, Refusal, type Instance, type Instances, type Progress, type Table, type Task } from "../shared/page";
import { useFlip } from "./flip";
import { count, span, time, utc } from "./format";
import { useNow } from "./live";

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
        <Summary instances={instances} />
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

function Summary({ instances }: { instances: Instance[] }) {
  const tasks = instances.flatMap((i) => i.tasks ?? []);
  const running = tasks.filter((t) => t.state === "running").length;
  const lag = tasks.reduce((sum, t) => sum + t.lag, 0);
  if (instances.length === 0) return null;
  return (
    <p class="summary">
      <b>{instances.filter((i) => i.ready).length}</b> of {instances.length} ready, <b>{running}</b> of {tasks.length} tasks running, <b>{count(lag)}</b> {lag === 1 ? "record" : "records"} behind
    </p>
  );
}

function States() {
  return (
    <ul class="legend states" aria-hidden="true">
      <li class="key task running">running</li>
      <li class="key task restoring">restoring</li>
      <li class="key task waiting">settling</li>
      <li class="key task failed">failed</li>
      <li class="key task away">held elsewhere</li>
    </ul>
  );
}

/** "flights-by-origin_3" as its subtopology and its partition. */
function split(task: string): [string, number] {
  const at = task.lastIndexOf("_");
  return [task.slice(0, at), Number(task.slice(at + 1))];
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

function Card({ instance, slots, demo, token, lost }: CardProps) {
  const tasks = new Map((instance.tasks ?? []).map((t) => [t.task, t]));
  const state = lost ? "lost" : !instance.running ? "stopped" : instance.ready ? "ready" : "starting";
  const words = { lost: "no answer", stopped: "stopped", ready: "ready", starting: "not ready" }[state];
  return (
    <article class={`card ${state}`} aria-label={`Instance ${instance.id}`}>
      <header>
        <span class="letter" aria-hidden="true">
          {instance.id}
        </span>
        <div class="who">
          <a href={`${location.protocol}//${instance.http}/`}>{instance.http}</a>
          <small>{instance.self ? "serves this page" : `instance ${instance.id}`}</small>
        </div>
        <span class={`state ${state}`}>{words}</span>
        {demo && <Switch instance={instance} token={token} lost={lost} />}
      </header>
      {[...slots].map(([name, n]) => (
        <Group key={name} name={name} size={n} tasks={tasks} />
      ))}
      <Notes instance={instance} />
      {instance.tables?.map((t) => (
        <TableLine key={t.table} table={t} />
      ))}
    </article>
  );
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

/** The partitions of a subtopology in a row: those held here are filled. */
function Group({ name, size, tasks }: { name: string; size: number; tasks: Map<string, Task> }) {
  const ids = Array.from({ length: size }, (_, i) => `${name}_${i}`);
  const held = ids.filter((id) => tasks.has(id)).length;
  return (
    <div class="group">
      <h3>
        {name} <small>{held} of {size}</small>
      </h3>
      <ul>
        {ids.map((id, i) => {
          const task = tasks.get(id);
          return task ? (
            <Cell key={id} task={task} partition={i} />
          ) : (
            <li key={`${id} away`} class="task away" aria-hidden="true">
              {i}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** How the states look: the rest is "settling". */
function look(state: string): string {
  if (state === "running" || state === "restoring" || state === "failed") return state;
  return "waiting";
}

function Cell({ task, partition }: { task: Task; partition: number }) {
  const share = done(task.progress);
  const inner = task.state === "restoring" ? `${Math.floor(share * 100)} %` : task.lag > 0 ? `+${count(task.lag)}` : task.state === "running" ? "0" : "…";
  const words = [`${task.task}: ${task.state}`, `${count(task.lag)} behind`];
  if (task.role && task.role !== "active") words.push(task.role);
  if (task.stores?.length) words.push(`stores ${task.stores.join(", ")}`);
  words.push(`seq ${task.seq}`);
  const at = time(task.streamTime);
  if (Number.isFinite(at)) words.push(`stream time ${utc(at, "moment")} UTC`);
  if (task.heldBy != null) words.push(`its time is that of source partition ${task.heldBy}`);
  if (task.error) words.push(task.error);
  return (
    <li class={`task ${look(task.state)}`} data-flip={task.task} title={words.join("\n")}>
      {task.state === "restoring" && <span class="done" style={{ height: `${share * 100}%` }} aria-hidden="true" />}
      <b>{partition}</b>
      <small aria-hidden="true">{task.state === "failed" ? "!" : inner}</small>
      <span class="hidden">{words.slice(0, 2).join(", ")}</span>
    </li>
  );
}

function done(p: Progress | null | undefined): number {
  return p && p.Total > 0 ? Math.min(1, p.Done / p.Total) : 0;
}

/** The most tasks that are written about, so that a card keeps its height. */
const noted = 2;

/** In words: what is not as it should be. */
function Notes({ instance }: { instance: Instance }) {
  const notable = (instance.tasks ?? []).filter((t) => t.state !== "running" || t.error);
  if (!instance.running) return <p class="notes">Stopped. Its tasks go to the others.</p>;
  return (
    <ul class="notes">
      {!instance.ready && instance.reason && <li>{instance.reason}</li>}
      {instance.ready && notable.length === 0 && <li>All its tasks are running.</li>}
      {notable.slice(0, noted).map((t) => (
        <li key={t.task}>
          <b>{t.task}</b> {t.state === "running" ? "" : t.state} {restoring(t)} {t.error}
        </li>
      ))}
      {notable.length > noted && <li>and {notable.length - noted} more</li>}
    </ul>
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

function restoring(task: Task): string {
  const p = task.progress;
  if (task.state !== "restoring" || !p || p.Total <= 0) return "";
  const left = p.ETA > 0 ? `, ${span(p.ETA / 1e6)} left` : "";
  return `${count(p.Done)} of ${count(p.Total)}${left}`;
}
