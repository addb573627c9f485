import type { HostProcess, MountUser, ProcessScanRequest } from "./host-processes.ts";

/** A namespace as it crosses the channel: lines of its table are read on the other side. */
export interface ScannedNamespace {
  readonly name: string;
  readonly own: boolean;
  readonly processes: readonly HostProcess[];
  readonly lines: readonly string[];
}

export interface Scanned {
  readonly namespaces: readonly ScannedNamespace[];
  readonly pods: readonly (HostProcess & { readonly podUid: string })[];
  readonly openers: readonly (HostProcess & { readonly deviceNumber: string })[];
  readonly users: readonly MountUser[];
}

/** Threads of one process that see the same mounts. */
interface Seen extends HostProcess {
  readonly namespace: string;
  /** As the process spells it; from another root (chroot) it sees only what is mounted below that. */
  readonly root: string;
  /** A thread of it that is alive: `/proc/812/task/815`. Of the first one nothing can be read once it has ended. */
  readonly thread: string;
}

/**
 * The part of a probe child that looks at processes. Like all of it, it is handed to `node --eval` as text, so that it needs no
 * file of its own wherever the agent runs from; therefore it may use nothing from outside its body but types.
 *
 * Reads only what asks for no lock of the process it looks at: `cmdline` and `maps` would wait behind a page fault on a
 * dead NFS server.
 */
export function createProcessScan(): (request: ProcessScanRequest) => Scanned {
  const fs = process.getBuiltinModule("node:fs");
  /** Container runtimes write the uid with underscores where systemd names the group. 32 digits: a static pod. */
  const POD = /pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])/;
  /** More names help nobody. */
  const USERS_MAX = 3;
  /** Filesystems whose files cannot be looked at without asking a server that may be dead; devices are on none of them. */
  const REMOTE = /^(nfs|cifs|smb|fuse|ceph|9p|gluster|lustre|afs|virtiofs)/;

  function read(path: string): string | undefined {
    return unlessGone(() => fs.readFileSync(path, "utf8"));
  }

  /** Processes come and go while they are looked at. A zombie has no namespace left. */
  function unlessGone<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "ENOENT" || code === "ESRCH" || code === "EINVAL") return undefined;
      throw error;
    }
  }

  /** Whoever started the agent is no container of a pod, and may be more privileged than the agent. */
  function ancestors(): ReadonlySet<string> {
    const found = new Set<string>(["1"]);
    for (let pid = String(process.pid); pid !== "0" && pid !== "" && !found.has(pid);) {
      found.add(pid);
      // `812 (a name) S 1 ...`: the name may hold anything.
      const stat = read(`/proc/${pid}/stat`) ?? "";
      pid = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1] ?? "";
    }
    return found;
  }

  /** Undefined where it has ended. */
  function viewOf(thread: string): Pick<Seen, "namespace" | "root" | "thread"> | undefined {
    const namespace = unlessGone(() => fs.readlinkSync(`${thread}/ns/mnt`));
    if (namespace === undefined) return undefined;
    return { namespace, root: unlessGone(() => fs.readlinkSync(`${thread}/root`)) ?? "", thread };
  }

  /** Any thread may have moved to a namespace of its own, and may go on when the first has ended. */
  function viewsOf(
    pid: string,
    excused: ReadonlySet<string>,
  ): readonly NonNullable<ReturnType<typeof viewOf>>[] {
    const found = new Map<string, NonNullable<ReturnType<typeof viewOf>>>();
    try {
      for (const thread of unlessGone(() => fs.readdirSync(`/proc/${pid}/task`)) ?? []) {
        const view = viewOf(`/proc/${pid}/task/${thread}`);
        if (view && !found.has(`${view.namespace} ${view.root}`))
          found.set(`${view.namespace} ${view.root}`, view);
      }
      return [...found.values()];
    } catch (error) {
      const { code } = error as { code?: string };
      if (excused.has(pid) && (code === "EACCES" || code === "EPERM")) return [];
      const command = (read(`/proc/${pid}/comm`) ?? "").trim();
      throw new Error(
        `process ${pid} (${command}) may not be looked at (${String(code)}); the agent needs CAP_SYS_PTRACE`,
        { cause: error },
      );
    }
  }

  function lookAt(pid: string, excused: ReadonlySet<string>): readonly Seen[] {
    const views = viewsOf(pid, excused);
    const [first] = views;
    if (first === undefined) return [];
    const podUid = POD.exec(read(`${first.thread}/cgroup`) ?? "")?.[1]?.replaceAll("_", "-");
    const command = (read(`/proc/${pid}/comm`) ?? "").trim();
    return views.map((view) => ({
      ...{ pid: Number(pid), command, ...view },
      ...(podUid !== undefined && { podUid }),
    }));
  }

  /** Twice: what was born during the first reading is in the second. */
  function allProcesses(): readonly Seen[] {
    const excused = ancestors();
    const known = new Map<string, readonly Seen[]>();
    for (let round = 0; round < 2; round++)
      for (const pid of fs.readdirSync("/proc"))
        if (/^\d+$/.test(pid) && !known.has(pid)) known.set(pid, lookAt(pid, excused));
    return [...known.values()].flat();
  }

  /** Those of the filesystems asked for, with what they are mounted on, and what passes on what it hears of others. */
  function linesOf(members: readonly Seen[], filesystems: ReadonlySet<string>): readonly string[] {
    const lines = tableOf(members);
    const fields = lines.map((line) => line.split(" ", 3));
    const parents = new Set<string | undefined>();
    for (const [, parent, device] of fields) if (filesystems.has(device ?? "")) parents.add(parent);
    return lines.filter((line, at) => {
      const [id, , device] = fields[at] ?? [];
      return filesystems.has(device ?? "") || parents.has(id) || / shared:\d+ master:/.test(line);
    });
  }

  /** Everything mounted in a namespace that somebody in it sees: from each root, as far as that one sees. */
  function tableOf(members: readonly Seen[]): readonly string[] {
    const tables = new Map<string, string>();
    for (const one of members)
      if (!tables.has(one.root)) {
        const text = ofThread(one, (thread) => read(`${thread}/mountinfo`));
        if (text !== undefined && text !== "") tables.set(one.root, text);
      }
    // Whoever sees all of it spells the paths.
    const texts = [...tables]
      .sort(([a], [b]) => Number(a === "/") - Number(b === "/"))
      .map(([, text]) => text);
    const byId = new Map<string | undefined, string>();
    for (const line of texts.flatMap((text) => text.split("\n"))) byId.set(line.split(" ", 1)[0], line);
    byId.delete("");
    return [...byId.values()];
  }

  /** The thread that was seen may have ended since, and others that see the same go on. */
  function ofThread<T>(
    { pid, namespace, root, thread }: Seen,
    work: (thread: string) => T | undefined,
  ): T | undefined {
    const found = work(thread);
    if (found !== undefined) return found;
    for (const other of unlessGone(() => fs.readdirSync(`/proc/${pid}/task`)) ?? []) {
      const view = viewOf(`/proc/${pid}/task/${other}`);
      const again = view?.namespace === namespace && view.root === root ? work(view.thread) : undefined;
      if (again !== undefined) return again;
    }
    return undefined;
  }

  function openersOf(seen: readonly Seen[], devices: ReadonlySet<string>): Scanned["openers"] {
    const types = new Map<string, ReadonlyMap<string, string>>();
    return seen.flatMap((one) => {
      if (one.pid === process.ppid || one.pid === process.pid) return [];
      const found = new Set<string>();
      for (const fd of ofThread(one, filesOf) ?? []) {
        const device = deviceOf(one, fd, types);
        if (device !== undefined && devices.has(device)) found.add(device);
      }
      return [...found].map((deviceNumber) => ({ ...nameOf(one), deviceNumber }));
    });
  }

  /** `/proc/812/task/815/fd/3`, ...; undefined where the thread has ended, which has no list, or an empty one. */
  function filesOf(thread: string): readonly string[] | undefined {
    const names = unlessGone(() => fs.readdirSync(`${thread}/fd`)) ?? [];
    return names.length === 0 ? undefined : names.map((name) => `${thread}/fd/${name}`);
  }

  function nameOf({ pid, command, podUid }: Seen): HostProcess {
    return { pid, command, ...(podUid !== undefined && { podUid }) };
  }

  /** Of an open file that is a block device. */
  function deviceOf(
    one: Seen,
    file: string,
    types: Map<string, ReadonlyMap<string, string>>,
  ): string | undefined {
    const link = unlessGone(() => fs.readlinkSync(file));
    if (link === undefined || !link.startsWith("/")) return undefined;
    const mount = /^mnt_id:\s*(\d+)/m.exec(read(file.replace("/fd/", "/fdinfo/")) ?? "")?.[1];
    let known = types.get(one.namespace);
    if (known === undefined) types.set(one.namespace, (known = typesOf(one)));
    const type = known.get(mount ?? "");
    // On a mount that is in no namespace any more (a container's old root) it is a device as any other.
    if (type !== undefined && REMOTE.test(type)) return undefined;
    const stat = unlessGone(() => fs.statSync(file, { bigint: true }));
    if (!stat?.isBlockDevice()) return undefined;
    const major = ((stat.rdev >> 8n) & 0xfffn) | ((stat.rdev >> 32n) & ~0xfffn);
    const minor = (stat.rdev & 0xffn) | ((stat.rdev >> 12n) & ~0xffn & 0xffffffffn);
    return `${major}:${minor}`;
  }

  /** By the number of the mount, which an open file keeps: no file is touched, and whoever moved elsewhere is found, too. */
  function usersOf(seen: readonly Seen[], own: string, points: readonly string[]): Scanned["users"] {
    const mounts = new Map<string, string>();
    for (const line of (read("/proc/self/mountinfo") ?? "").split("\n")) {
      const [id = "", , , , at = ""] = line.split(" ", 5);
      const path = at.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(parseInt(code, 8)));
      const point = points.find((one) => isIn(path, one));
      if (point !== undefined) mounts.set(id, point);
    }
    const found: MountUser[] = [];
    for (const one of mounts.size === 0 ? [] : seen) {
      if (one.pid === process.ppid || one.pid === process.pid) continue;
      const use = (one.namespace === own ? placeOf(one, points) : undefined) ?? fileOf(one, mounts);
      if (use !== undefined && found.every(({ pid }) => pid !== one.pid))
        found.push({ ...nameOf(one), ...use });
      if (found.length === USERS_MAX) break;
    }
    return found;
  }

  function isIn(path: string, point: string): boolean {
    return path === point || path.startsWith(`${point}/`);
  }

  function placeOf(one: Seen, points: readonly string[]): Pick<MountUser, "mountPoint" | "how"> | undefined {
    for (const [link, what] of [
      ["cwd", "working directory"],
      ["root", "root directory"],
    ] as const) {
      const path = unlessGone(() => fs.readlinkSync(`${one.thread}/${link}`));
      const point = path === undefined ? undefined : points.find((each) => isIn(path, each));
      if (point !== undefined) return { mountPoint: point, how: `has its ${what} at ${path}` };
    }
    return undefined;
  }

  function fileOf(
    one: Seen,
    mounts: ReadonlyMap<string, string>,
  ): Pick<MountUser, "mountPoint" | "how"> | undefined {
    for (const file of ofThread(one, filesOf) ?? []) {
      const info = read(file.replace("/fd/", "/fdinfo/")) ?? "";
      const point = mounts.get(/^mnt_id:\s*(\d+)/m.exec(info)?.[1] ?? "");
      if (point === undefined) continue;
      const path = unlessGone(() => fs.readlinkSync(file)) ?? point;
      return { mountPoint: point, how: `has ${path} open` };
    }
    return undefined;
  }

  function typesOf(one: Seen): ReadonlyMap<string, string> {
    return new Map(
      tableOf([one]).map((line) => [
        line.split(" ", 1)[0] ?? "",
        line.slice(line.indexOf(" - ") + 3).split(" ", 1)[0] ?? "",
      ]),
    );
  }

  function scan({ filesystems, devices, mountPoints = [] }: ProcessScanRequest): Scanned {
    const own = fs.readlinkSync("/proc/self/ns/mnt");
    const seen = allProcesses();
    const wanted = new Set(filesystems);
    const members = new Map<string, Seen[]>();
    const pods = new Map<string, Scanned["pods"][number]>();
    for (const one of seen) {
      const { namespace, pid, command, podUid } = one;
      const there = members.get(namespace);
      if (there) there.push(one);
      else members.set(namespace, [one]);
      if (podUid !== undefined && !pods.has(podUid)) pods.set(podUid, { pid, command, podUid });
    }
    const namespaces = [...members].map(([name, all]): ScannedNamespace => {
      const firsts = new Map<string | undefined, HostProcess>();
      for (const one of all) if (!firsts.has(one.podUid)) firsts.set(one.podUid, nameOf(one));
      return { name, own: name === own, processes: [...firsts.values()], lines: linesOf(all, wanted) };
    });
    const openers = devices.length === 0 ? [] : openersOf(seen, new Set(devices));
    return { namespaces, pods: [...pods.values()], openers, users: usersOf(seen, own, mountPoints) };
  }

  return scan;
}
