import { fromBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, describe, expect, test } from "vitest";
import { classOf, CsiError } from "../../src/csi/errors.ts";
import {
  BlockMetadataType,
  Controller,
  ControllerPublishVolumeRequestSchema,
  Identity,
  SnapshotMetadata,
  VolumeCapability_AccessMode_Mode,
  type ControllerPublishVolumeRequest,
} from "../../src/csi/gen/csi_pb.ts";
import { createClient, serve, type Channel, type ServedMethod } from "../../src/csi/methods.ts";

/** A channel with handlers at its other end, and the means to take them away. */
export interface CsiFixture {
  readonly channel: Channel;
  /** Ends the other side, as a crash would. */
  disconnect(): Promise<void>;
  reconnect(): Promise<void>;
  close(): Promise<void>;
}

const within = { timeoutMs: 10_000 };

/** What every pair of channel and server promises, whatever is between them. */
export function csiTransportContract(
  name: string,
  makeFixture: (served: readonly ServedMethod[]) => Promise<CsiFixture>,
): void {
  describe(`csi transport contract: ${name}`, () => {
    let fixture: CsiFixture | undefined;
    afterEach(() => fixture?.close());

    async function given(...served: ServedMethod[][]): Promise<Channel> {
      fixture = await makeFixture(served.flat());
      return fixture.channel;
    }

    messages(given);
    failures(given);
    endings(given);
    streams(given);

    test("a lost connection fails the calls on it and is told; the next calls go through again", async () => {
      let entered = () => {};
      const inHandler = new Promise<void>((resolve) => (entered = resolve));
      let slow = true;
      const channel = await given(
        serve(Identity, {
          probe: () => {
            entered();
            return slow ? new Promise(() => undefined) : Promise.resolve({});
          },
        }),
      );
      const { probe } = createClient(Identity, channel);
      const lost = new Promise<void>((resolve) => channel.onLost(resolve));
      const running = probe({}, within).catch((error: unknown) => error);
      await inHandler;

      slow = false;
      await fixture!.disconnect();

      expect(await running).toMatchObject({ code: "UNAVAILABLE", class: "uncertain" });
      await lost;
      await expect(probe({}, within)).rejects.toMatchObject({ code: "UNAVAILABLE" });
      await fixture!.reconnect();
      await channel.ready(within);
      expect((await probe({}, within)).ready).toBeUndefined();
    });

    test("a closed channel serves nobody, and closing it twice is fine", async () => {
      const channel = await given(serve(Identity, { probe: async () => ({}) }));

      channel.close();
      channel.close();

      await expect(createClient(Identity, channel).probe({}, within)).rejects.toMatchObject({
        code: "UNAVAILABLE",
      });
    });
  });
}

type Given = (...served: ServedMethod[][]) => Promise<Channel>;

function messages(given: Given): void {
  test("requests and answers arrive as they were sent: maps, wide integers, presence", async () => {
    let seen: ControllerPublishVolumeRequest | undefined;
    const channel = await given(
      serve(Controller, {
        controllerPublishVolume: async (request) => {
          seen = request;
          return { publishContext: { device: "/dev/loop7", ü: "✓" } };
        },
        controllerExpandVolume: async ({ capacityRange }) => ({
          capacityBytes: (capacityRange?.requiredBytes ?? 0n) + 1n,
        }),
      }),
    );
    const client = createClient(Controller, channel);

    const published = await client.controllerPublishVolume(
      {
        volumeId: "v",
        volumeCapability: {
          accessType: { case: "block", value: {} },
          accessMode: { mode: VolumeCapability_AccessMode_Mode.MULTI_NODE_MULTI_WRITER },
        },
      },
      within,
    );
    const expanded = await client.controllerExpandVolume(
      { capacityRange: { requiredBytes: 2n ** 62n } },
      within,
    );

    expect(published.publishContext).toEqual({ device: "/dev/loop7", ü: "✓" });
    expect(seen?.volumeCapability?.accessType.case).toBe("block");
    expect(seen?.secrets).toEqual({});
    expect(expanded.capacityBytes).toBe(2n ** 62n + 1n);
  });

  test("ready: absent, true and false are three answers", async () => {
    const answers = [{}, { ready: true }, { ready: false }];
    let calls = 0;
    const channel = await given(serve(Identity, { probe: async () => answers[calls++] ?? {} }));
    const { probe } = createClient(Identity, channel);

    const seen = [await probe({}, within), await probe({}, within), await probe({}, within)];

    expect(seen.map(({ ready }) => ready)).toEqual([undefined, true, false]);
  });

  test("fields and enum numbers of a newer peer are no error", async () => {
    let mode: number | undefined;
    const channel = await given(
      serve(Controller, {
        controllerPublishVolume: async ({ volumeCapability }) => {
          mode = volumeCapability?.accessMode?.mode;
          return {};
        },
      }),
    );
    // access_mode 99 in field 3 of the capability, and a field 1000 nobody knows.
    const newer = fromBinary(
      ControllerPublishVolumeRequestSchema,
      Buffer.from("0a0176" + "1a04" + "1a020863" + "c23e03616263", "hex"),
    );

    await createClient(Controller, channel).controllerPublishVolume(newer, within);

    expect(mode).toBe(99);
  });

  test("a hundred calls at once each get their own answer", async () => {
    const channel = await given(
      serve(Controller, {
        controllerPublishVolume: async ({ volumeId }) => ({ publishContext: { volumeId } }),
      }),
    );
    const client = createClient(Controller, channel);
    const ids = Array.from({ length: 100 }, (_, index) => `volume-${index}`);

    const answers = await Promise.all(
      ids.map((volumeId) => client.controllerPublishVolume({ volumeId }, within)),
    );

    expect(answers.map(({ publishContext }) => publishContext["volumeId"])).toEqual(ids);
  });

  test("bytes that are no message are refused before any handler runs", async () => {
    let called = false;
    const channel = await given(
      serve(Controller, {
        deleteVolume: async () => {
          called = true;
          return {};
        },
      }),
    );
    // A volume_id that is not UTF-8: bytes and strings share their wire type.
    const method = { ...Controller.method.deleteVolume, input: BytesValueSchema };

    const call = channel.unary(method, { value: Buffer.from([0xff, 0xfe]) }, within);

    await expect(call).rejects.toMatchObject({ code: "INVALID_ARGUMENT", class: "final" });
    expect(called).toBe(false);
  });
}

function failures(given: Given): void {
  test("code and words of a handler reach its caller, the class with them", async () => {
    const channel = await given(
      serve(Controller, {
        deleteVolume: async () => {
          throw new CsiError("FAILED_PRECONDITION", "v is in use on node-a: 100 %, naïve\nsecond line");
        },
      }),
    );

    const error: unknown = await createClient(Controller, channel)
      .deleteVolume({ volumeId: "v" }, within)
      .catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({
      code: "FAILED_PRECONDITION",
      number: 9,
      detail: "v is in use on node-a: 100 %, naïve\nsecond line",
    });
    expect(classOf(error)).toBe("retryable");
  });

  test("a bug in a handler is INTERNAL, without a word of it", async () => {
    const channel = await given(
      serve(Identity, {
        probe: async () => {
          throw new TypeError("cannot read /root/secret-file");
        },
      }),
    );

    const call = createClient(Identity, channel).probe({}, within);

    await expect(call).rejects.toMatchObject({ code: "INTERNAL" });
    await expect(call).rejects.not.toThrow("secret-file");
  });

  test("a method nobody serves is UNIMPLEMENTED", async () => {
    const channel = await given(serve(Identity, { probe: async () => ({}) }));

    const calls = [
      createClient(Identity, channel).getPluginInfo({}, within),
      createClient(Controller, channel).listVolumes({}, within),
    ];

    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
  });

  test("a secret never comes back in an error, in no encoding", async () => {
    const secret = "hunter2-and-more";
    const channel = await given(
      serve(Controller, {
        deleteVolume: async ({ secrets }) => {
          const value = secrets["password"] ?? "";
          throw new CsiError("UNAUTHENTICATED", `${value} ${Buffer.from(value).toString("base64")} is wrong`);
        },
      }),
    );

    const call = createClient(Controller, channel).deleteVolume({ secrets: { password: secret } }, within);

    await expect(call).rejects.toMatchObject({ detail: "***stripped*** ***stripped*** is wrong" });
  });

  test("words that no header can carry are made to fit", async () => {
    const texts = ["half a pair: \uD83D.", "x".repeat(100_000), ""];
    let calls = 0;
    const channel = await given(
      serve(Identity, {
        probe: async () => {
          throw new CsiError("ABORTED", texts[calls++] ?? "");
        },
      }),
    );
    const { probe } = createClient(Identity, channel);

    await expect(probe({}, within)).rejects.toMatchObject({ detail: "half a pair: \uFFFD." });
    await expect(probe({}, within)).rejects.toMatchObject({ detail: "x".repeat(1_024) });
    await expect(probe({}, within)).rejects.toMatchObject({ detail: "no message was given" });
  });
}

function endings(given: Given): void {
  /** A handler that never answers, and what it saw of its caller. */
  function hang() {
    const seen = { entered: false, gone: Promise.resolve() };
    const served = serve(Identity, {
      probe: (_, { signal }) => {
        seen.entered = true;
        seen.gone = new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
        return new Promise(() => undefined);
      },
    });
    return { seen, served };
  }

  test("a deadline that passes leaves the outcome open, and the handler learns that nobody waits", async () => {
    const { seen, served } = hang();
    const channel = await given(served);

    const call = createClient(Identity, channel).probe({}, { timeoutMs: 100 });

    await expect(call).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED", class: "uncertain" });
    expect(seen.entered).toBe(true);
    await seen.gone;
  });

  test("a caller that gives up gets CANCELLED at once, and the handler learns of it", async () => {
    const { seen, served } = hang();
    const channel = await given(served);
    const controller = new AbortController();

    const call = createClient(Identity, channel).probe({}, { ...within, signal: controller.signal });
    while (!seen.entered) await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error("shutting down"));

    await expect(call).rejects.toMatchObject({ code: "CANCELLED", class: "uncertain" });
    await seen.gone;
  });

  test("the signal of a call that was answered stays silent, well or badly as it went", async () => {
    const signals: AbortSignal[] = [];
    const channel = await given(
      serve(Identity, {
        probe: async (_, { signal }) => {
          signals.push(signal);
          return {};
        },
        getPluginInfo: async (_, { signal }) => {
          signals.push(signal);
          throw new CsiError("INTERNAL", "no");
        },
      }),
      serve(SnapshotMetadata, {
        getMetadataDelta: async function* (_, { signal }) {
          signals.push(signal);
          yield {};
        },
      }),
    );
    const client = createClient(Identity, channel);

    await client.probe({}, within);
    await client.getPluginInfo({}, within).catch(() => undefined);
    for await (const _ of createClient(SnapshotMetadata, channel).getMetadataDelta({}, within));
    // Another call on the same connection: whatever the ones before left to be told has been told by now.
    await client.probe({}, within);
    channel.close();
    await new Promise((resolve) => setImmediate(resolve));

    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
  });

  test("a call cancelled before it began does not reach the handler", async () => {
    const { seen, served } = hang();
    const channel = await given(served);

    const call = createClient(Identity, channel).probe({}, { ...within, signal: AbortSignal.abort() });

    await expect(call).rejects.toMatchObject({ code: "CANCELLED" });
    expect(seen.entered).toBe(false);
  });
}

function streams(given: Given): void {
  const chunk = (byteOffset: bigint) => ({
    blockMetadataType: BlockMetadataType.FIXED_LENGTH,
    volumeCapacityBytes: 1n << 40n,
    blockMetadata: [{ byteOffset, sizeBytes: 4_096n }],
  });

  test("a stream arrives in order and ends when the handler does", async () => {
    const channel = await given(
      serve(SnapshotMetadata, {
        getMetadataAllocated: async function* ({ startingOffset }) {
          for (let index = 0n; index < 50n; index++) yield chunk(startingOffset + index * 4_096n);
        },
      }),
    );

    const offsets: bigint[] = [];
    const request = { snapshotId: "s", startingOffset: 8_192n };
    for await (const { blockMetadata } of createClient(SnapshotMetadata, channel).getMetadataAllocated(
      request,
      within,
    ))
      offsets.push(...blockMetadata.map(({ byteOffset }) => byteOffset));

    expect(offsets).toEqual(Array.from({ length: 50 }, (_, index) => 8_192n + BigInt(index) * 4_096n));
  });

  test("a stream that breaks says so after what was sent before", async () => {
    const channel = await given(
      serve(SnapshotMetadata, {
        getMetadataDelta: async function* () {
          yield chunk(0n);
          throw new CsiError("OUT_OF_RANGE", "past the end");
        },
      }),
    );

    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const message of createClient(SnapshotMetadata, channel).getMetadataDelta({}, within))
        seen.push(message);
    })();

    await expect(reading).rejects.toMatchObject({ code: "OUT_OF_RANGE", detail: "past the end" });
    expect(seen).toHaveLength(1);
  });

  test("a reader that stops early lets the handler know, and whatever it holds is let go", async () => {
    let told = () => {};
    let letGo = () => {};
    const [gone, released] = [
      new Promise<void>((resolve) => (told = resolve)),
      new Promise<void>((resolve) => (letGo = resolve)),
    ];
    const channel = await given(
      serve(SnapshotMetadata, {
        getMetadataAllocated: async function* (_, { signal }) {
          signal.addEventListener("abort", told);
          try {
            for (;;) {
              yield chunk(0n);
              await new Promise((resolve) => setImmediate(resolve));
            }
          } finally {
            letGo();
          }
        },
      }),
    );

    for await (const message of createClient(SnapshotMetadata, channel).getMetadataAllocated({}, within)) {
      expect(message.volumeCapacityBytes).toBe(1n << 40n);
      break;
    }

    await gone;
    await released;
  });

  test("a reader that gives up while the handler is at work: it ends at its next message", async () => {
    let letGo = () => {};
    let goOn = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    const awaited = new Promise<void>((resolve) => (goOn = resolve));
    const channel = await given(
      serve(SnapshotMetadata, {
        getMetadataAllocated: async function* () {
          try {
            yield chunk(0n);
            await awaited;
            yield chunk(4_096n);
            yield chunk(8_192n);
          } finally {
            letGo();
          }
        },
      }),
    );
    const tired = new AbortController();
    const reading = (async () => {
      const options = { ...within, signal: tired.signal };
      for await (const _ of createClient(SnapshotMetadata, channel).getMetadataAllocated({}, options))
        tired.abort();
    })();

    await expect(reading).rejects.toMatchObject({ code: "CANCELLED" });
    goOn();

    await released;
  });
}
