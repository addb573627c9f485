import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { keepHeapSmall } from "../../src/processes/heap.ts";
import { startApiServer } from "../../src/processes/apiserver.ts";

/** Where a contestant listens, and as whom the load speaks to it. */
export interface Target {
  /** On loopback, so its certificate is not checked. */
  readonly url: string;
  readonly token: string;
}

/** Our server as `mooring apiserver` runs it, and its process, whose memory the parent looks at. */
export interface Served extends Target {
  readonly pid: number;
  /** What objects are kept in: every write that is answered is on disk. */
  readonly store: "lmdb";
}

const TOKEN = "bench";

/** As a child of the benchmark: until its process ends. Whoever made the directory removes it. */
export async function serve({ directory }: { directory: string }): Promise<Served> {
  keepHeapSmall();
  const tokenAuthFile = join(directory, "tokens.csv");
  await writeFile(tokenAuthFile, `${TOKEN},bench,bench,"system:masters"\n`);
  const { url } = await startApiServer(
    {
      clock: createSystemClock(),
      random: createSystemRandom(),
      log: silentLogger,
      report: () => undefined,
    },
    {
      dataDir: join(directory, "data"),
      host: "127.0.0.1",
      port: 0,
      authorizationMode: "rbac",
      tokenAuthFile,
    },
  );
  return { url, token: TOKEN, pid: process.pid, store: "lmdb" };
}
