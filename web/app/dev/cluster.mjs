// Invented instances whose tasks move when one stops or starts, with a standby
// of each task that has stores.

const restoreMs = 6_000;

/**
 * A cluster of an application: the stores of its subtopologies, and its table.
 * partitions and ids make it larger; trouble has instances say what goes wrong.
 */
export function cluster({ stores, table }, { partitions = 6, ids = ["a", "b", "c"], demo = true, trouble = {} } = {}) {
  const names = Object.keys(stores).flatMap((name) => Array.from({ length: partitions }, (_, p) => `${name}_${p}`));
  const running = new Map(ids.map((id) => [id, true]));
  const owners = new Map(); // task → { id, since }
  const others = new Map(); // task → id of the standby
  const assign = () => {
    const alive = [...running].filter(([, up]) => up).map(([id]) => id);
    const first = owners.size === 0;
    names.forEach((task) => {
      const p = Number(task.slice(task.lastIndexOf("_") + 1));
      const id = alive[p % Math.max(1, alive.length)];
      if (owners.get(task)?.id !== id) owners.set(task, { id, since: first ? 0 : Date.now() });
      const standby = alive[(p + 1) % Math.max(1, alive.length)];
      if (storesOf(task).length > 0 && standby !== id) others.set(task, standby);
      else others.delete(task);
    });
  };
  const storesOf = (task) => stores[task.replace(/_\d+$/, "")];
  assign();

  const told = { asOf: () => Date.now(), overlayBytes: 48_000, seq: () => Math.floor(Date.now() / 1_000) % 100_000 };
  const active = (name, owner) => {
    const share = Math.min(1, (Date.now() - owner.since) / restoreMs);
    const restoring = storesOf(name).length > 0 && (share < 1 || trouble.restoring?.[name] !== undefined);
    const at = trouble.restoring?.[name] ?? share;
    return {
      ...copy(name, "active", restoring ? "restoring" : "running"),
      lag: restoring ? 120 : Math.floor(Math.random() * 1.2),
      progress: restoring ? { Done: Math.floor(at * 300_000), Total: 300_000, Rate: 50_000, ETA: (1 - at) * restoreMs * 1e6 } : null,
      ...trouble.tasks?.[name],
    };
  };
  const copy = (name, role, state) => ({
    task: name,
    stores: storesOf(name),
    state,
    role,
    error: "",
    seq: told.seq(),
    lag: 0,
    asOf: told.asOf(),
    streamTime: Date.now() - (storesOf(name).length > 0 ? 30 : 29) * 60_000,
    heldBy: null,
    overlayBytes: storesOf(name).length > 0 ? told.overlayBytes : 0,
    progress: null,
  });
  const tasksOf = (id) => [
    ...[...owners].filter(([, o]) => o.id === id).map(([name, o]) => active(name, o)),
    ...[...others].filter(([, other]) => other === id).map(([name]) => copy(name, "standby", "following")),
  ];
  const silent = (tasks) => tasks.map(({ task, role }) => ({ task, stores: null, state: "unknown", role, seq: 0, lag: 0, asOf: 0, streamTime: null }));

  const instance = (port) => (id, i) => {
    const up = running.get(id);
    const tasks = up ? tasksOf(id) : [];
    const quiet = trouble.silent?.includes(id);
    return {
      id,
      http: `127.0.0.1:${port + i}`,
      rack: trouble.rack?.[id] ?? "",
      self: i === 0 && !trouble.gateway,
      running: up,
      silent: quiet,
      live: up && !quiet,
      generation: up && !quiet ? 7 : 0,
      ready: up && !quiet && tasks.every((t) => t.state === "running" || t.state === "following"),
      reason: quiet ? "it does not answer within 800ms" : !up ? "stopped" : "tasks are being restored",
      tasks: quiet ? silent(tasks) : tasks,
      tables: up && !quiet ? [{ table, state: "running", rows: 224, lag: 0 }] : [],
      breakers: trouble.breakers?.[id] ?? Object.fromEntries([...running].filter(([other]) => other !== id).map(([other]) => [other, "closed"])),
    };
  };
  const gateway = (port) => ({
    id: "gateway-7d4b9", http: `127.0.0.1:${port}`, self: true, gateway: true, running: true, live: true, ready: true, reason: "",
    generation: 7, tasks: [], tables: [], breakers: trouble.breakers?.gateway ?? {},
  });

  return {
    demo,
    stop: (id) => (running.set(id, false), assign()),
    start: (id) => (running.set(id, true), assign()),
    told: (port) => [...(trouble.gateway ? [gateway(port)] : []), ...ids.map(instance(port))],
  };
}
