import { beforeAll, describe, expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import type { ClientCertificate } from "../transport/access.ts";
import { loadChangingAccess } from "./changing.ts";
import { createMemoryWorld } from "./memory-world.testing.ts";
import { renderKubeconfig } from "./render.ts";
import { makeCertificate } from "./scenario.testing.ts";

const FILE = "/data/admin.kubeconfig";

let old: ClientCertificate, renewed: ClientCertificate;
beforeAll(async () => {
  [old, renewed] = await Promise.all([makeCertificate("old"), makeCertificate("renewed")]);
});

function render(ca: string, clientCertificate: ClientCertificate): string {
  const server = "https://127.0.0.1:6443";
  return renderKubeconfig({ name: "mooring", server, ca, user: "admin", clientCertificate });
}

async function given() {
  const scheduler = new SimScheduler(createSeededRandom("changing"));
  const world = createMemoryWorld({ files: { [FILE]: render(old.certificate, old) } });
  const lines: string[] = [];
  const log = createLogger((level, message) => lines.push(`${level} ${message}`));
  const access = await loadChangingAccess({ world, clock: scheduler.createClock(), log }, FILE);
  return { scheduler, access, lines, write: (text: string) => void world.files.set(FILE, text) };
}

describe("a kubeconfig that is rewritten under us", () => {
  test("gives its new certificate, and the authorities to trust, within a minute", async () => {
    const { scheduler, access, write } = await given();
    const first = await access.credentials.current();
    const bundle = old.certificate + renewed.certificate;
    write(render(bundle, renewed));

    await scheduler.runFor(59_000);
    expect([await access.credentials.current(), access.tls.ca]).toEqual([first, old.certificate]);
    await scheduler.runFor(1_000);

    expect(await access.credentials.current()).toEqual({ clientCertificate: renewed });
    expect(access.tls.ca).toBe(bundle);
    expect(access.server).toBe("https://127.0.0.1:6443");
  });

  test("gives it at once where the server rejects the old one", async () => {
    const { access, write } = await given();
    write(render(old.certificate, renewed));

    expect(access.credentials.rejected(await access.credentials.current())).toBe(true);

    expect(await access.credentials.current()).toEqual({ clientCertificate: renewed });
  });

  test("keeps what it had while the file is unusable, and says so once", async () => {
    const { scheduler, access, write, lines } = await given();
    const first = await access.credentials.current();
    write("half a fi");

    for (let minute = 0; minute < 3; minute++) {
      await scheduler.runFor(60_000);
      expect(await access.credentials.current()).toBe(first);
    }

    expect(access.tls.ca).toBe(old.certificate);
    expect(lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
  });
});
