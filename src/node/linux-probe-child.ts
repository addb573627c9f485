import type { BigIntStats, Dirent, Stats } from "node:fs";
import type { ProcessScanRequest } from "./host-processes.ts";

type Reply = (part: {
  progress?: number;
  value?: unknown;
  error?: { code: string; message: string };
}) => void;
type ProcessScanner = (request: ProcessScanRequest) => unknown;
type Args = Readonly<Record<string, unknown>>;
interface Entry {
  /** Reaches it however its directory is renamed. */
  readonly path: string;
  readonly stat: Stats;
}
type Action = (args: Args, reply: Reply, state: WalkState) => Promise<unknown>;

/** One request. Walks of several go on side by side. */
interface WalkState {
  calls: Calls;
  cancelled: boolean;
}

/** The calls of a walk: at once, or each on a thread so that several wait at the same time. */
interface Calls {
  lstat(path: string): Stats | Promise<Stats>;
  lchown(path: string, uid: number, gid: number): void | Promise<void>;
  chmod(path: string, mode: number): void | Promise<void>;
  rmdir(path: string): void | Promise<void>;
  unlink(path: string): void | Promise<void>;
  open(path: string, flags: number): number | Promise<number>;
}

/**
 * What a probe child runs: everything that may hang on a dead mount, and walks over whole volumes. It is handed to
 * `node --eval` as text, so that it needs no file of its own wherever the agent runs from; therefore it may use nothing
 * from outside its body but types.
 *
 * Walks go from one held directory to its entries as `/proc/self/fd/N/name`, and never by a path: whoever owns the
 * volume may swap a directory for a link to /etc at any moment, and a path would follow it.
 */
export function probeChildMain(scanProcesses: ProcessScanner): void {
  const fs = process.getBuiltinModule("node:fs");
  const { promises } = fs;
  const O_PATH = 0o10000000;
  const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY, O_EXCL, O_NONBLOCK } = fs.constants;
  const patient: Calls = {
    lstat: (path) => promises.lstat(path),
    lchown: promises.lchown,
    chmod: promises.chmod,
    rmdir: (path) => promises.rmdir(path),
    unlink: promises.unlink,
    open: (path, flags) => openPath(path, flags),
  };
  const actions: Readonly<Record<string, Action>> = {
    ...createLooks(),
    ...createWalks(),
    processes: async ({ request }) => scanProcesses(request as ProcessScanRequest),
  };

  /** Looks at one path, and steps of a subPath. */
  function createLooks(): Record<string, Action> {
    function kindOf(one: Stats | BigIntStats | Dirent): string {
      if (one.isFile()) return "file";
      if (one.isDirectory()) return "directory";
      if (one.isSymbolicLink()) return "symlink";
      if (one.isSocket()) return "socket";
      if (one.isBlockDevice()) return "block";
      return one.isCharacterDevice() ? "char" : "other";
    }

    /** The kernel's `major:minor` of a device number, as glibc packs it. */
    function deviceNumber(packed: bigint): string {
      const major = ((packed >> 8n) & 0xfffn) | ((packed >> 32n) & ~0xfffn);
      const minor = (packed & 0xffn) | ((packed >> 12n) & ~0xffn & 0xffffffffn);
      return `${major}:${minor}`;
    }

    function toStat(found: BigIntStats): unknown {
      const kind = kindOf(found);
      return {
        kind,
        mode: Number(found.mode & 0o7777n),
        uid: Number(found.uid),
        gid: Number(found.gid),
        sizeBytes: Number(found.size),
        identity: `${found.dev}/${found.ino}`,
        ...(kind === "block" || kind === "char" ? { deviceNumber: deviceNumber(found.rdev) } : {}),
      };
    }

    /** One step of a subPath from a held directory; the first one names the volume's root instead. */
    async function openStep({ from, name, mode }: Args): Promise<unknown> {
      const path = typeof from === "string" ? from : `/proc/self/fd/${Number(from)}/${String(name)}`;
      const flags = O_PATH | (typeof from === "string" ? 0 : O_NOFOLLOW);
      let fd = await unlessGone(() => openPath(path, flags));
      if (fd === undefined && typeof mode === "number") {
        await promises.mkdir(path, mode);
        fd = await openPath(path, flags);
        // The umask took bits away, and setgid is for chmod alone. Held, so that no link swapped in is changed.
        if (fs.fstatSync(fd).isDirectory()) fs.chmodSync(`/proc/self/fd/${fd}`, mode);
      }
      if (fd === undefined) throw failure("ENOENT", path);
      const stat = toStat(fs.fstatSync(fd, { bigint: true })) as { kind: string };
      const link = stat.kind === "symlink" ? fs.readlinkSync(path) : undefined;
      return { fd, pid: process.pid, stat, link };
    }

    return {
      stat: async ({ path }) => toStat(await promises.lstat(String(path), { bigint: true })),
      statTarget: async ({ path }) => toStat(await promises.stat(String(path), { bigint: true })),
      realPath: ({ path }) => promises.realpath(String(path)),
      readLink: ({ path }) => promises.readlink(String(path)),
      async list({ path }) {
        const entries = await promises.readdir(String(path), { withFileTypes: true });
        return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
      },
      async usage({ path }) {
        const { type, bsize, blocks, bfree, bavail, files, ffree } = await promises.statfs(String(path));
        return { type, bsize, blocks, bfree, bavail, files, ffree };
      },
      async isInUse({ path }) {
        const found = await unlessGone(() => promises.stat(String(path)));
        if (found === undefined || !(found.isBlockDevice() || found.isCharacterDevice())) return false;
        const file = await promises.open(String(path), O_RDONLY | O_EXCL | O_NONBLOCK);
        await file.close();
        return false;
      },
      openStep,
      async closeSteps({ fds }) {
        for (const fd of fds as number[]) fs.closeSync(fd);
        return null;
      },
    };
  }

  /** Walks over whole volumes, several side by side. */
  function createWalks(): Record<string, Action> {
    const SETGID = 0o2000;
    /** Entries of a walk handled at the same time. Each is a thread: on a network filesystem they hide its latency. */
    const PARALLEL = 16;
    /** Directories walked at the same time. */
    const LANES = 8;
    const PROGRESS_MS = 1_000;
    /** Entries between two looks at how fast they go. */
    const SLICE = 256;
    /** A local disk takes 0.02 ms an entry, where handing each call to a thread would take ten times that. */
    const SLOW_MS = 0.5;
    const ERRORS_MAX = 5;

    const quick: Calls = {
      lstat: (path) => fs.lstatSync(path),
      lchown: fs.lchownSync,
      chmod: fs.chmodSync,
      rmdir: (path) => fs.rmdirSync(path),
      unlink: fs.unlinkSync,
      open: (path, flags) => fs.openSync(path, flags),
    };
    /** By the number that statfs has for them: a quick call on any other may hang this child with all it does. */
    const LOCAL = new Set([
      0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x958458f6, 0x794c7630, 0x2fc12fc1, 0xf2f52010,
    ]);

    return { applyGroup, diskUsage, removeTree, readRanges };

    /** Which mount a descriptor is on: exact also for a bind of the same device, where device numbers are equal. */
    function mountOf(fd: number): string {
      return /^mnt_id:\s*(\d+)/m.exec(fs.readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "";
    }

    /**
     * Visits everything below a directory, entries before their directory, then the directory itself. A directory on
     * another mount is left out, or refused where `refuseMounts`.
     */
    async function walk(
      root: string,
      state: WalkState,
      visit: (entry: Entry) => Promise<void>,
      { refuseMounts = false }: { refuseMounts?: boolean } = {},
    ): Promise<void> {
      // A walk over a local disk begins quickly, and turns patient for good where that proves slow.
      if (LOCAL.has((await promises.statfs(root)).type)) state.calls = quick;
      const rootFd = await openDirectory(root, state);
      const mount = mountOf(rootFd);
      let lanes = 0;
      /** Settles only when nothing below uses the descriptor any more: its number may then belong to another directory. */
      async function below(fd: number): Promise<void> {
        const entries = await promises.readdir(`/proc/self/fd/${fd}`, { withFileTypes: true });
        const toPath = (entry: { name: string }) => `/proc/self/fd/${fd}/${entry.name}`;
        await parallel(entries.filter((entry) => !entry.isDirectory()).map(toPath), one, state);
        const errors: unknown[] = [];
        const aside: Promise<unknown>[] = [];
        for (const path of entries.filter((entry) => entry.isDirectory()).map(toPath)) {
          if (errors.length > 0) break;
          // Descriptors held are at most lanes x depth.
          const isAside = lanes < LANES;
          if (isAside) lanes++;
          const done = directory(path).catch((error: unknown) => errors.push(error));
          if (isAside) aside.push(done.finally(() => lanes--));
          else await done;
        }
        await Promise.all(aside);
        if (errors.length > 0) throw errors[0];
      }
      async function one(path: string): Promise<void> {
        const stat = await unlessGone(async () => state.calls.lstat(path));
        if (stat !== undefined) await visit({ path, stat });
      }
      async function directory(path: string): Promise<void> {
        const fd = await unlessGone(() => openDirectory(path, state));
        if (fd === undefined) return;
        try {
          if (mountOf(fd) !== mount) {
            if (refuseMounts) throw failure("EBUSY", `${path} is a mount point`);
            return;
          }
          await below(fd);
        } finally {
          fs.closeSync(fd);
        }
        await one(path);
      }
      try {
        await below(rootFd);
        await visit({ path: root, stat: fs.fstatSync(rootFd) });
      } finally {
        fs.closeSync(rootFd);
      }
    }

    /** Ends when all have ended, with the first failure; after one, no more are begun. */
    async function parallel(
      paths: readonly string[],
      work: (path: string) => Promise<void>,
      state: WalkState,
    ): Promise<void> {
      const errors: unknown[] = [];
      for (let from = 0; from < paths.length && errors.length === 0; from += SLICE) {
        const slice = paths.slice(from, from + SLICE);
        const startedMs = performance.now();
        let at = 0;
        const worker = async (): Promise<void> => {
          for (let path = slice[at++]; path !== undefined && errors.length === 0; path = slice[at++])
            await work(path).catch((error: unknown) => errors.push(error));
        };
        await Promise.all(Array.from({ length: Math.min(PARALLEL, slice.length) }, worker));
        if ((performance.now() - startedMs) / slice.length > SLOW_MS) state.calls = patient;
        // Quick calls leave no turn for looks, other walks, and the timer that tells the progress.
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (state.cancelled) throw failure("ECANCELED", "called off");
      if (errors.length > 0) throw errors[0];
    }

    async function openDirectory(path: string, { calls }: WalkState): Promise<number> {
      return calls.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }

    /** chmod follows links, so that the file is held first and changed as held; the kernel changes no mode of a link. */
    async function chmodHeld(path: string, mode: number, { calls }: WalkState): Promise<void> {
      const fd = await calls.open(path, O_PATH | O_NOFOLLOW);
      try {
        await calls.chmod(`/proc/self/fd/${fd}`, mode);
      } finally {
        fs.closeSync(fd);
      }
    }

    /** Told once a second while it moves: whoever waits can tell slow from stuck. */
    async function withProgress(
      reply: Reply,
      walking: (count: () => void) => Promise<void>,
    ): Promise<number> {
      let files = 0;
      let told = 0;
      const timer = setInterval(() => {
        if (files !== told) reply({ progress: files });
        told = files;
      }, PROGRESS_MS);
      try {
        await walking(() => {
          files++;
        });
      } finally {
        clearInterval(timer);
      }
      return files;
    }

    async function applyGroup(
      { path, gid, readOnly }: Args,
      reply: Reply,
      state: WalkState,
    ): Promise<unknown> {
      const errors: string[] = [];
      let failed = 0;
      async function change({ path: entry, stat }: Entry): Promise<void> {
        const more = (readOnly ? 0o440 : 0o660) | (stat.isDirectory() ? 0o110 | SETGID : 0);
        const mode = (stat.mode & 0o7777) | more;
        // Of a file that has both already nothing is written: most of a second walk costs one lstat a file.
        if (stat.gid !== gid) await state.calls.lchown(entry, stat.uid, Number(gid));
        // chown drops setgid of what is executable, so that a mode with it is set again.
        const dropped = stat.gid !== gid && (mode & 0o6000) !== 0;
        if (!stat.isSymbolicLink() && (mode !== (stat.mode & 0o7777) || dropped))
          await chmodHeld(entry, mode, state);
      }
      const files = await withProgress(reply, (count) =>
        walk(String(path), state, async (entry) => {
          try {
            await change(entry);
          } catch (error) {
            failed++;
            if (errors.length < ERRORS_MAX)
              errors.push(`${nameOf(entry.path)}: ${String((error as { code?: unknown }).code)}`);
          }
          count();
        }),
      );
      return { files, failed, errors };
    }

    /** As the volume's owner knows it: descriptors mean nothing to a reader. */
    function nameOf(path: string): string {
      const held = /^(\/proc\/self\/fd\/\d+)(\/.*)$/.exec(path);
      return held === null ? path : `${fs.readlinkSync(held[1] ?? "")}${held[2]}`;
    }

    async function diskUsage({ path }: Args, reply: Reply, state: WalkState): Promise<unknown> {
      const counted = new Set<number>();
      let usedBytes = 0;
      let inodesUsed = 0;
      await withProgress(reply, (count) =>
        walk(String(path), state, async ({ stat }) => {
          count();
          // A file with several names takes its space once.
          if (stat.nlink > 1 && !stat.isDirectory()) {
            if (counted.has(stat.ino)) return;
            counted.add(stat.ino);
          }
          usedBytes += stat.blocks * 512;
          inodesUsed++;
        }),
      );
      return { usedBytes, inodesUsed };
    }

    /** Where the first byte lies that differs from a blank disk's; null where there is none. A short read is an error. */
    async function readRanges({ path, ranges }: Args, reply: Reply, state: WalkState): Promise<unknown> {
      const CHUNK = 1 << 20;
      const file = await promises.open(String(path), O_RDONLY);
      const blanks = [Buffer.alloc(CHUNK, 0), Buffer.alloc(CHUNK, 0xff)];
      const buffer = Buffer.alloc(CHUNK);
      let could = blanks;
      let dataAt: number | null = null;
      try {
        await withProgress(reply, async (count) => {
          for (const [from, length] of ranges as [number, number][])
            for (let at = from; at < from + length && dataAt === null; at += CHUNK) {
              if (state.cancelled) throw failure("ECANCELED", "called off");
              const wanted = Math.min(CHUNK, from + length - at);
              const { bytesRead } = await file.read(buffer, 0, wanted, at);
              if (bytesRead !== wanted) throw failure("EIO", `${bytesRead} of ${wanted} bytes at ${at}`);
              could = could.filter((blank) => blank.compare(buffer, 0, wanted, 0, wanted) === 0);
              if (could.length === 0) dataAt = at;
              count();
            }
        });
      } finally {
        await file.close();
      }
      return { dataAt };
    }

    async function removeTree({ path }: Args, reply: Reply, state: WalkState): Promise<unknown> {
      const root = String(path);
      const found = await unlessGone(() => promises.lstat(root));
      if (found === undefined) return null;
      if (!found.isDirectory()) return promises.unlink(root);
      await withProgress(reply, (count) =>
        walk(
          root,
          state,
          async ({ path: entry, stat }) => {
            const { calls } = state;
            await unlessGone(async () => (stat.isDirectory() ? calls.rmdir(entry) : calls.unlink(entry)));
            count();
          },
          { refuseMounts: true },
        ),
      );
      return null;
    }
  }

  function failure(code: string, message: string): Error {
    return Object.assign(new Error(message), { code });
  }

  /** Somebody else removed it, or made a link of it, since it was listed. */
  async function unlessGone<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (["ENOENT", "ENOTDIR", "ELOOP"].includes(String((error as { code?: unknown }).code)))
        return undefined;
      throw error;
    }
  }

  function openPath(path: string, flags: number): Promise<number> {
    return new Promise((resolve, reject) =>
      fs.open(path, flags, (error, fd) => (error ? reject(error) : resolve(fd))),
    );
  }

  const states = new Map<number, WalkState>();
  process.on("message", (message) => {
    const { id, action, args } = message as { id: number; action: string; args: Args };
    if (action === "cancel") {
      const called = states.get(id);
      if (called !== undefined) called.cancelled = true;
      return;
    }
    const reply: Reply = (part) => void process.send?.({ id, ...part });
    const work = actions[action];
    if (work === undefined) {
      reply({ error: { code: "ENOSYS", message: action } });
      return;
    }
    const state: WalkState = { calls: patient, cancelled: false };
    states.set(id, state);
    work(args, reply, state)
      .then(
        (value) => reply({ value }),
        (error: unknown) => {
          const { code, message: text } = error as { code?: string; message?: string };
          reply({ error: { code: code ?? "failed", message: text ?? "" } });
        },
      )
      .finally(() => states.delete(id));
  });
  // The agent is gone: what hangs here is nobody's any more.
  process.on("disconnect", () => process.exit(0));
}
