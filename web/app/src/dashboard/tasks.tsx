import { useState } from "preact/hooks";
import type { Progress, Task } from "../shared/page";
import { bytes, count, span, time, utc } from "./format";
import { useNow } from "./live";

/** Up to how many partitions a subtopology's are shown with their numbers, and as marks. */
const numbered = 24;
const marked = 600;

/** The most tasks that are listed one by one. */
const listed = 200;

/** "flights-by-origin_3" as its subtopology and its partition. */
export function split(task: string): [string, number] {
  const at = task.lastIndexOf("_");
  return [task.slice(0, at), Number(task.slice(at + 1))];
}

interface GroupProps {
  name: string;
  size: number;
  tasks: Map<string, Task>;
}

/**
 * The partitions of a subtopology: those held here are filled, by role and
 * state. Each is told of in full when asked.
 */
export function Group({ name, size, tasks }: GroupProps) {
  const [open, setOpen] = useState(false);
  const ids = Array.from({ length: size }, (_, i) => `${name}_${i}`);
  const held = ids.flatMap((id) => tasks.get(id) ?? []);
  return (
    <div class="group">
      <h3>
        <button class="fold" aria-expanded={open} onClick={() => setOpen(!open)} disabled={held.length === 0}>
          <span class="name">{name}</span> <small>{roles(held, size)}</small>
        </button>
      </h3>
      {size <= marked && (
        <ul class={size <= numbered ? "cells" : "marks"}>
          {ids.map((id, i) => {
            const task = tasks.get(id);
            if (task) return <Cell key={id} task={task} partition={i} small={size > numbered} />;
            return (
              <li key={`${id} away`} class="task away" aria-hidden="true">
                {size <= numbered && i}
              </li>
            );
          })}
        </ul>
      )}
      {open && held.length > 0 && <List tasks={held} />}
    </div>
  );
}

const order = ["active", "standby", "warm-up", "lingering"];

/** How many of which role: "4 active, 2 standby of 12". */
function roles(held: Task[], size: number): string {
  const counts = order.map((role) => [held.filter((t) => t.role === role).length, role] as const).filter(([n]) => n > 0);
  if (counts.length === 0) return `none of ${count(size)}`;
  return `${counts.map(([n, role]) => `${count(n)} ${role}`).join(", ")} of ${count(size)}`;
}

/** How the states look: the rest is "settling". */
export function look(task: Task): string {
  const { state, role } = task;
  if (state === "running" || state === "following") return role === "active" && state === "running" ? "running" : "following";
  if (state === "restoring" || state === "failed" || state === "unknown") return state;
  return "waiting";
}

const briefly: Record<string, string> = { standby: "standby", "warm-up": "warm-up", lingering: "lingers" };

function Cell({ task, partition, small }: { task: Task; partition: number; small: boolean }) {
  const share = done(task.progress);
  const state = look(task);
  const told = describe(task);
  return (
    <li class={`task ${state} ${task.note ? "noted" : ""}`} data-flip={task.role === "active" ? task.task : undefined} title={told.join("\n")}>
      {state === "restoring" && <span class="done" style={{ height: `${share * 100}%` }} aria-hidden="true" />}
      {!small && (
        <>
          <b>{partition}</b>
          <small aria-hidden="true">{inner(task, state, share)}</small>
        </>
      )}
      <span class="hidden">{told.slice(0, 3).join(", ")}</span>
    </li>
  );
}

function inner(task: Task, state: string, share: number): string {
  switch (state) {
    case "restoring":
      return `${Math.floor(share * 100)} %`;
    case "failed":
      return "!";
    case "unknown":
      return "?";
    case "following":
      return briefly[task.role] ?? "";
    case "running":
      return task.lag > 0 ? `+${count(task.lag)}` : "0";
  }
  return "…";
}

/** A task in words, what matters most first. */
function describe(task: Task): string[] {
  const told = [`${task.task}: ${task.state}`, task.role];
  if (task.state === "unknown") return told;
  told.push(`${count(task.lag)} behind`);
  if (task.stores?.length) told.push(`stores ${task.stores.join(", ")}`);
  told.push(`seq ${task.seq}`);
  const at = time(task.streamTime);
  if (Number.isFinite(at)) told.push(`stream time ${utc(at, "moment")} UTC`);
  if (task.heldBy != null) told.push(`its time is that of source partition ${task.heldBy}`);
  if (task.error) told.push(task.error);
  if (task.note) told.push(task.note);
  return told;
}

/** How much of a restore is done, from 0 to 1. */
export function done(p: Progress | null | undefined): number {
  return p && p.Total > 0 ? Math.min(1, p.Done / p.Total) : 0;
}

function List({ tasks }: { tasks: Task[] }) {
  const now = useNow();
  return (
    <div class="list" tabIndex={0} role="region" aria-label="Tasks one by one">
      <table>
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col">Role</th>
            <th scope="col">State</th>
            <th scope="col" title="Source records that are not in it yet">
              Behind
            </th>
            <th scope="col" title="Since it last held all of its source">
              Age
            </th>
            <th scope="col" title="Rows that are not in its file yet">
              Unsaved
            </th>
          </tr>
        </thead>
        <tbody>
          {tasks.slice(0, listed).map((t) => (
            <tr key={t.task} class={look(t)}>
              <th scope="row">{split(t.task)[1]}</th>
              <td>{t.role}</td>
              <td>{t.state === "restoring" ? `restoring ${Math.floor(done(t.progress) * 100)} %` : t.state}</td>
              <td class="num">{t.state === "unknown" ? "?" : count(t.lag)}</td>
              <td class="num">{t.asOf ? age(now - t.asOf) : "–"}</td>
              <td class="num">{t.overlayBytes ? bytes(t.overlayBytes) : "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {tasks.length > listed && <p class="notes">and {count(tasks.length - listed)} more</p>}
    </div>
  );
}

function age(ms: number): string {
  return ms < 2_000 ? "now" : span(ms);
}
