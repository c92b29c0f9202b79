// Three invented instances whose tasks move when one stops or starts.

const partitions = 6;
const restoreMs = 6_000;

/** A cluster of an application: the stores of its subtopologies, and its table. */
export function cluster({ stores, table }) {
  const tasks = partitions * Object.keys(stores).length;
  const running = new Map([["a", true], ["b", true], ["c", true]]);
  const owners = new Map(); // task → { id, since }
  const assign = () => {
    const alive = [...running].filter(([, up]) => up).map(([id]) => id);
    for (const name of Object.keys(stores)) {
      for (let p = 0; p < partitions; p++) {
        const task = `${name}_${p}`;
        const id = alive[p % Math.max(1, alive.length)];
        if (owners.get(task)?.id !== id) owners.set(task, { id, since: owners.size < tasks ? 0 : Date.now() });
      }
    }
  };
  assign();

  const task = (name, owner) => {
    const subtopology = name.replace(/_\d+$/, "");
    const share = Math.min(1, (Date.now() - owner.since) / restoreMs);
    const restoring = stores[subtopology].length > 0 && share < 1;
    return {
      task: name,
      stores: stores[subtopology],
      state: restoring ? "restoring" : "running",
      role: "active",
      error: "",
      seq: Math.floor(Date.now() / 1_000) % 100_000,
      lag: restoring ? 120 : Math.floor(Math.random() * 1.2),
      asOf: Date.now(),
      streamTime: stores[subtopology].length > 0 ? Date.now() - 30 * 60_000 : Date.now() - 29 * 60_000,
      heldBy: null,
      progress: restoring ? { Done: Math.floor(share * 3_000), Total: 3_000, Rate: 500, ETA: (1 - share) * restoreMs * 1e6 } : null,
    };
  };

  return {
    stop: (id) => (running.set(id, false), assign()),
    start: (id) => (running.set(id, true), assign()),
    told: (port) =>
      [...running].map(([id, up], i) => ({
        id,
        http: `127.0.0.1:${port + i}`,
        self: id === "a",
        running: up,
        ready: up && ![...owners].some(([name, o]) => o.id === id && task(name, o).state !== "running"),
        reason: up ? "tasks are being restored" : "",
        tasks: up ? [...owners].filter(([, o]) => o.id === id).map(([name, o]) => task(name, o)) : [],
        tables: up ? [{ table, state: "running", rows: 224, lag: 0 }] : [],
      })),
  };
}
