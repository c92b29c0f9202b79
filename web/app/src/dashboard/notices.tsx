import type { Instance, Task } from "../shared/page";
import { count, short, span } from "./format";
import { done, look } from "./tasks";

/** The most restores and remarks that are shown one by one. */
const shown = 3;

/** In words: what an instance does beside its ordinary work, and what is wrong. */
export function Notices({ instance }: { instance: Instance }) {
  const tasks = instance.tasks ?? [];
  if (!instance.running) return <p class="notes">Stopped. Its tasks go to the others.</p>;
  const remarks = remarksOf(tasks);
  const open = Object.entries(instance.breakers ?? {}).filter(([, state]) => state !== "closed");
  const quiet = instance.ready && !instance.gateway && remarks.length === 0 && open.length === 0 && !tasks.some((t) => t.state === "restoring");
  return (
    <div class="notices">
      {!instance.ready && instance.reason && <p class="notes reason">{instance.reason}</p>}
      {instance.gateway && instance.ready && <p class="notes">It keeps no tasks: it asks the others.</p>}
      <Restores tasks={tasks.filter((t) => t.state === "restoring")} />
      {open.length > 0 && (
        <ul class="breakers">
          {open.map(([id, state]) => (
            <li key={id} class="badge warn" title={state === "open" ? "Calls to it have failed: none is made for now." : "One call is let through, to see."}>
              breaker to {id}: {state}
            </li>
          ))}
        </ul>
      )}
      <Remarks remarks={remarks} />
      {quiet && <p class="notes">{tasks.length > 0 ? "All its tasks are running." : "It has no tasks."}</p>}
    </div>
  );
}

/** How far restores are: few one by one, many as a sum. */
function Restores({ tasks }: { tasks: Task[] }) {
  if (tasks.length === 0) return null;
  const sum = { Done: 0, Total: 0, Rate: 0, ETA: 0 };
  for (const { progress: p } of tasks) {
    if (!p) continue;
    sum.Done += p.Done;
    sum.Total += p.Total;
    sum.Rate += p.Rate;
    sum.ETA = Math.max(sum.ETA, p.ETA);
  }
  const rows = tasks.length <= shown ? tasks : [{ ...tasks[0]!, task: `${count(tasks.length)} tasks`, progress: sum }];
  return (
    <ul class="restores">
      {rows.map((t) => (
        <Restore key={tasks.length <= shown ? t.task : ""} task={t} />
      ))}
    </ul>
  );
}

function Restore({ task }: { task: Task }) {
  const p = task.progress;
  const share = done(p);
  const told = [];
  if (p && p.Total > 0) told.push(`${short(p.Done)} of ${short(p.Total)}`);
  if (p && p.Rate > 0) told.push(`${short(p.Rate)}/s`);
  if (p && p.ETA > 0) told.push(`${span(p.ETA / 1e6)} left`);
  return (
    <li>
      <b>{task.task}</b> <span class="num">{told.length > 0 ? told.join(", ") : "restoring"}</span>
      <progress value={share} max={1} aria-label={`Restore of ${task.task}`}>
        {Math.floor(share * 100)} %
      </progress>
    </li>
  );
}

interface Remark {
  text: string;
  tasks: string[];
  bad: boolean;
}

/** Errors first, then what is wrong while tasks work on, then what settles. */
function remarksOf(tasks: Task[]): Remark[] {
  const found = new Map<string, Remark>();
  const add = (task: Task, text: string, bad: boolean) => {
    const known = found.get(text);
    if (known) known.tasks.push(task.task);
    else found.set(text, { text, tasks: [task.task], bad });
  };
  for (const t of tasks.filter((t) => t.error)) add(t, `${t.state}: ${t.error}`, t.state === "failed");
  for (const t of tasks.filter((t) => t.note)) add(t, t.note!, true);
  for (const t of tasks.filter((t) => !t.error && look(t) === "waiting")) add(t, t.state, false);
  return [...found.values()];
}

function Remarks({ remarks }: { remarks: Remark[] }) {
  const line = (r: Remark) => (
    <li key={r.text} class={r.bad ? "bad" : ""} title={r.tasks.length > 1 ? r.tasks.slice(0, 20).join(", ") : undefined}>
      <b>{r.tasks.length === 1 ? r.tasks[0] : `${count(r.tasks.length)} tasks`}</b> {r.text}
    </li>
  );
  if (remarks.length === 0) return null;
  return (
    <>
      <ul class="notes">{remarks.slice(0, shown).map(line)}</ul>
      {remarks.length > shown && (
        <details class="notes">
          <summary>and {remarks.length - shown} more</summary>
          <ul>{remarks.slice(shown, 200).map(line)}</ul>
        </details>
      )}
    </>
  );
}
