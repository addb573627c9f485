import { describe, expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import type { NodeName, VolumeName } from "../names.ts";
import { createPluginRegistry } from "../registry.ts";
import type { VolumeSpec } from "../spec.ts";
import { createFlexDriver } from "./flex-driver.ts";
import { createFlexPlugin } from "./flex.ts";
import { FakeFlexHost, NOT_SUPPORTED } from "./flex.testing.ts";

const FILE = "/plugins/acme~disk/disk";
const VOLUME = "acme/disk/pv-1" as VolumeName;
const NODE = "node-a" as NodeName;
const OPTIONS = `{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"pv-1","kubernetes.io/readwrite":"rw","lun":"7"}`;

const SPEC: VolumeSpec = {
  kind: "persistent",
  volume: {
    metadata: { name: "pv-1" },
    spec: { flexVolume: { driver: "acme/disk", options: { lun: "7" } } },
  },
  readOnly: false,
  migrated: "none",
};

function given({ canAttach = true } = {}) {
  const host = new FakeFlexHost();
  const lines: string[] = [];
  const log = createLogger((_, message) => lines.push(message));
  const call = createFlexDriver(host, { driver: "acme/disk", file: FILE });
  const plugin = createFlexPlugin({ call, log }, { driver: "acme/disk", canAttach });
  const abort = new AbortController();
  const at = { volume: VOLUME, spec: SPEC, node: NODE, signal: abort.signal, pluginVolume: "pv-1" };
  return { host, plugin, at, abort, lines };
}

describe("a FlexVolume driver as a plugin", () => {
  test("its volumes are called <driver>/<spec name> and are found by that name", () => {
    const { plugin } = given();
    const registry = createPluginRegistry(() => [plugin]);

    expect(registry.volumeNameOf(SPEC)).toBe(VOLUME);
    expect(registry.byVolume(VOLUME)).toEqual({ plugin, pluginVolume: "pv-1" });
    expect(plugin.metricName(SPEC)).toBe("acme/disk");
  });

  test("serves its own volumes only, in pods and persistent", () => {
    const { plugin } = given();
    const inline = (driver: string): VolumeSpec => ({
      kind: "inline",
      volume: { name: "data", flexVolume: { driver } },
    });

    expect(plugin.canSupport(SPEC)).toBe(true);
    expect(plugin.canSupport(inline("acme/disk"))).toBe(true);
    expect(plugin.canSupport(inline("acme/other"))).toBe(false);
    expect(plugin.canSupport({ kind: "inline", volume: { name: "data", emptyDir: {} } })).toBe(false);
  });

  test("needs attaching only where init said so", () => {
    expect(given().plugin.needsAttach(SPEC)).toBe(true);
    expect(given({ canAttach: false }).plugin.needsAttach(SPEC)).toBe(false);
  });

  test("scenario 102: attach gives the options and the node, and answers with the device path", async () => {
    const { host, plugin, at } = given();
    host.replies.set("attach", `{"status":"Success","device":"/dev/xvdba"}`);

    expect(await plugin.attach(at)).toBe("/dev/xvdba");
    expect(host.calls).toEqual([[FILE, "attach", OPTIONS, "node-a"]]);
  });

  test("detach gives the volume's name and the node", async () => {
    const { host, plugin, at } = given();

    await plugin.detach(at);

    expect(host.calls).toEqual([[FILE, "detach", "pv-1", "node-a"]]);
  });

  for (const [reply, verdict] of [
    [`{"status":"Success","attached":true}`, "attached"],
    [`{"status":"Success","attached":false}`, "not-attached"],
    [`{"status":"Success"}`, "not-attached"],
    [NOT_SUPPORTED, "unknown"],
    [`{"status":"Failure","message":"busy"}`, "unknown"],
    ["Segmentation fault", "unknown"],
    [Object.assign(new Error("late"), { code: "ETIMEDOUT" }), "unknown"],
  ] as const) {
    test(`isattached says ${String(reply)}: ${verdict}`, async () => {
      const { host, plugin, at } = given();
      host.replies.set("isattached", reply);

      expect(await plugin.verify(at)).toBe(verdict);
      expect(host.calls).toEqual([[FILE, "isattached", OPTIONS, "node-a"]]);
    });
  }

  test("without a spec there is nothing to ask", async () => {
    const { host, plugin } = given();

    expect(await plugin.verify({ volume: VOLUME, spec: undefined, node: NODE })).toBe("unknown");
    expect(host.calls).toEqual([]);
  });

  test("what is not supported counts as done, and is not asked again", async () => {
    const { host, plugin, at } = given();
    for (const verb of ["attach", "detach"]) host.replies.set(verb, { stdout: NOT_SUPPORTED, code: 1 });

    expect(await plugin.attach(at)).toBe("");
    await plugin.detach(at);
    expect(await plugin.attach(at)).toBe("");
    await plugin.detach(at);

    expect(host.verbs).toEqual(["attach", "detach"]);
  });

  test("a name that could be read as an option or a command never reaches a driver", async () => {
    const { host, plugin, at } = given();

    for (const pluginVolume of ["--all", "$(reboot)", "../../etc", ""])
      await expect(plugin.detach({ ...at, pluginVolume })).rejects.toMatchObject({ code: "BadInput" });
    await expect(plugin.attach({ ...at, node: "a b" as NodeName })).rejects.toMatchObject({
      code: "BadInput",
    });

    expect(host.calls).toEqual([]);
  });
});

describe("a driver that fails says which, what, on what and how", () => {
  for (const [what, reply, text] of [
    [
      "status Failure",
      { stdout: `{"status":"Failure","message":"no LUN 7"}`, code: 1 },
      `DriverFailed: FlexVolume driver acme/disk, attach, volume pv-1 on node node-a: status "Failure", "no LUN 7" (exit code 1)`,
    ],
    [
      "status Failure with exit code 0",
      `{"status":"Failure"}`,
      /^DriverFailed: .*status "Failure", "" \(exit code 0\)$/,
    ],
    [
      "Success with exit code 3",
      { stdout: `{"status":"Success"}`, code: 3, stderr: "oops" },
      /^DriverFailed: .*answered Success, but exit code 3; stderr "oops"$/,
    ],
    [
      "Success, killed",
      { stdout: `{"status":"Success"}`, code: undefined },
      /^DriverFailed: .*ended by a signal$/,
    ],
    [
      "no JSON",
      { stdout: "done", stderr: "line 3: jq: not found", code: 127 },
      /^BadAnswer: .*"done".*jq: not found"$/,
    ],
    ["nothing at all", "", /^BadAnswer: .*printed "", which is no JSON object \(exit code 0\)$/],
    [
      "a secret in its message",
      `{"status":"Failure","message":"401 for Authorization: Bearer abcdefgh12345678"}`,
      /Bearer \[redacted\]/,
    ],
    [
      "no end",
      Object.assign(new Error("late"), { code: "ETIMEDOUT" }),
      /^DeadlineExceeded: .*no answer within 120 s.*may have done its work$/,
    ],
    [
      "no program",
      Object.assign(new Error("gone"), { code: "ENOENT" }),
      /^BadDriver: .*\/plugins\/acme~disk\/disk: gone$/,
    ],
    ["too much output", Object.assign(new Error("big"), { code: "EFBIG" }), /^BadAnswer: .*big$/],
  ] as const) {
    test(`attach: ${what}`, async () => {
      const { host, plugin, at } = given();
      host.replies.set("attach", reply);

      await expect(plugin.attach(at)).rejects.toThrow(text);
    });
  }

  test("an answer on stderr counts where stdout is empty", async () => {
    const { host, plugin, at } = given();
    host.replies.set("attach", { stderr: `{"status":"Success","device":"/dev/sdb"}` });

    expect(await plugin.attach(at)).toBe("/dev/sdb");
  });

  test("a look that fails is logged, because its verdict cannot say why", async () => {
    const { host, plugin, at, lines } = given();
    host.replies.set("isattached", "garbage");

    await plugin.verify(at);

    expect(lines).toEqual(["flexvolume not verified"]);
  });

  test("aborted by the caller: the caller's reason, not the driver's fault", async () => {
    const { host, plugin, at, abort } = given();
    host.replies.set("attach", () => {
      abort.abort(new Error("shutting down"));
      return new Error("killed");
    });

    await expect(plugin.attach(at)).rejects.toThrow("shutting down");
  });
});

describe("bounds", () => {
  const never = new Promise<never>(() => undefined);
  /** Each operation has a signal of its own. */
  const alone = <T>(at: T) => ({ ...at, signal: new AbortController().signal });
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  test("32 changes and 4 looks run at once; looks do not hold up an attach", async () => {
    const { host, plugin, at } = given();
    host.replies.set("isattached", never);
    host.replies.set("detach", never);

    for (let i = 0; i < 50; i++) void plugin.verify(at);
    await settled();
    expect(host.running).toBe(4);

    for (let i = 0; i < 50; i++) void plugin.detach(alone(at));
    await settled();
    expect(host.running).toBe(4 + 32);
  });

  test("a call is with the driver once its turn has come, not while it stands in line", async () => {
    const { host, plugin, at } = given();
    host.replies.set("detach", never);
    host.replies.set("attach", never);
    let accepted = 0;
    const onAccepted = () => {
      accepted++;
    };

    for (let i = 0; i < 31; i++) void plugin.detach({ ...alone(at), onAccepted });
    void plugin.attach({ ...alone(at), onAccepted });
    void plugin.attach({ ...alone(at), onAccepted });
    await settled();

    expect(accepted).toBe(32);
  });

  test("those in line get their turn; one that is aborted in line leaves it", async () => {
    const { host, plugin, at } = given();
    const gates: (() => void)[] = [];
    const run = { code: 0, stdout: `{"status":"Success"}`, stderr: "" };
    host.replies.set("detach", () => new Promise((resolve) => gates.push(() => resolve(run))));
    const first = Array.from({ length: 32 }, () => plugin.detach(alone(at)));
    const leaver = new AbortController();
    const left = plugin.detach({ ...at, signal: leaver.signal });
    const last = plugin.detach(at);
    await settled();

    leaver.abort(new Error("no longer wanted"));
    await expect(left).rejects.toThrow("no longer wanted");
    gates[0]?.();
    await settled();
    expect(gates.length).toBe(33);
    for (const open of gates) open();
    await Promise.all([...first, last]);

    expect(host.runningMax).toBe(32);
    expect(host.running).toBe(0);
  });

  test("a driver that hangs on looks answers unknown at once when 256 wait", async () => {
    const { host, plugin, at } = given();
    host.replies.set("isattached", never);
    for (let i = 0; i < 260; i++) void plugin.verify(at);
    await settled();

    expect(await plugin.verify(at)).toBe("unknown");
  });
});
