import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { abortable, type Clock } from "../../base/clock.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import { createCapabilities } from "../../csi/capabilities.ts";
import { CsiError } from "../../csi/errors.ts";
import type { NodeServiceCapability_RPC_Type as Rpc } from "../../csi/gen/csi_pb.ts";
import { pathOf, type Channel } from "../../csi/methods.ts";
import { scrubError } from "../../csi/redact.ts";
import { CALL_MS } from "../late-calls.ts";
import { grpcCodeName, UnansweredCall } from "./csi-errors.ts";

/** The drivers that serve this node, by name: one channel each, made when it registers. Bounded by their sockets. */
export interface CsiDrivers {
  /** Undefined while it is not registered. */
  get(name: string): CsiDriverClient | undefined;
  names(): readonly string[];
  /** A driver to talk to, not yet known to anybody. */
  open(announced: DriverAddress): CsiDriverClient;
  /** From now on `get` answers this one; the one before finishes its calls and is closed. */
  put(driver: CsiDriverClient): void;
  remove(driver: CsiDriverClient): void;
  /** Told the name of every driver that came, went or was replaced: whoever waits for it tries again. */
  onChange(listener: (name: string) => void): () => void;
  close(): void;
}

export interface DriverAddress {
  readonly name: string;
  readonly endpoint: string;
  readonly version: string;
}

export interface CsiDriverClient extends DriverAddress {
  /** What its node service can do, asked once a connection (FIX 19). */
  capabilities(signal: AbortSignal): Promise<ReadonlySet<Rpc>>;
  /** Rejects with a CsiError without any secret of the request in it. */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: DriverCallOptions,
  ): Promise<MessageShape<O>>;
  /** Closes the channel as soon as no call runs on it. Twice does nothing. */
  retire(): void;
}

export interface DriverCallOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Whether the volume is an in-tree one, for metrics. */
  readonly migrated?: boolean;
}

/** Upstream's 2 minutes of an operation include probes; those have their own here (FIX 34). */
const PROBE_MS = 10_000;

const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

export interface CsiDriversDeps {
  readonly clock: Clock;
  readonly connect: (endpoint: string) => Channel;
  readonly metrics?: Metrics;
}

export function createCsiDrivers({ clock, connect, metrics = noMetrics }: CsiDriversDeps): CsiDrivers {
  const drivers = new Map<string, CsiDriverClient>();
  const listeners = new Set<(name: string) => void>();
  const durations = metrics.histogram({
    name: "csi_operations_seconds",
    help: "Container Storage Interface operation duration with gRPC error code status total",
    labels: ["driver_name", "method_name", "grpc_status_code", "migrated"],
    buckets: BUCKETS,
  });

  function changed(name: string): void {
    for (const listener of [...listeners]) listener(name);
  }

  return {
    get: (name) => drivers.get(name),
    names: () => [...drivers.keys()].sort(),
    open: (announced) =>
      createDriverClient(
        { clock, channel: connect(announced.endpoint) },
        announced,
        ({ method, code, tookMs, migrated }) =>
          durations.observe(tookMs / 1_000, {
            driver_name: announced.name,
            method_name: method,
            grpc_status_code: code,
            migrated: String(migrated),
          }),
      ),
    put(driver) {
      const before = drivers.get(driver.name);
      drivers.set(driver.name, driver);
      if (before !== driver) before?.retire();
      changed(driver.name);
    },
    remove(driver) {
      driver.retire();
      if (drivers.get(driver.name) !== driver) return;
      drivers.delete(driver.name);
      changed(driver.name);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      listeners.clear();
      for (const driver of drivers.values()) driver.retire();
      drivers.clear();
    },
  };
}

interface FinishedCall {
  readonly method: string;
  readonly code: string;
  readonly tookMs: number;
  readonly migrated: boolean;
}

function createDriverClient(
  { clock, channel }: { readonly clock: Clock; readonly channel: Channel },
  { name, endpoint, version }: DriverAddress,
  observe: (call: FinishedCall) => void,
): CsiDriverClient {
  const known = createCapabilities(channel);
  let running = 0;
  let retired = false;
  let connection = createLoss();
  channel.onLost(() => {
    connection.lost();
    connection = createLoss();
  });

  async function counted<T>(work: () => Promise<T>): Promise<T> {
    running++;
    try {
      return await work();
    } finally {
      running--;
      closeWhenIdle();
    }
  }

  function closeWhenIdle(): void {
    if (!retired || running > 0) return;
    known.close();
    channel.close();
  }

  return {
    name,
    endpoint,
    version,
    // Shared by all who ask, so nobody's giving up may end it for the others.
    capabilities: (signal) => counted(() => abortable(known.node({ timeoutMs: PROBE_MS }), signal)),
    call: (method, request, { signal, timeoutMs = CALL_MS, migrated = false }) =>
      counted(async () => {
        const startedAtMs = clock.now();
        const { over } = connection;
        const done = (code: string) =>
          observe({ method: pathOf(method), code, tookMs: clock.now() - startedAtMs, migrated });
        try {
          const answer = await channel.unary(method, request, { timeoutMs, signal });
          done("OK");
          return answer;
        } catch (error) {
          if (!(error instanceof CsiError)) {
            done("unknown-non-grpc");
            throw error;
          }
          done(grpcCodeName(error.code));
          const scrubbed = scrubError(error, method.input, create(method.input, request));
          throw isCutOff(error) ? new UnansweredCall(scrubbed, { over, sinceMs: startedAtMs }) : scrubbed;
        }
      }),
    retire() {
      if (retired) return;
      retired = true;
      closeWhenIdle();
    },
  };
}

/** One connection, and the end of it. */
function createLoss() {
  let lost = () => {};
  const over = new Promise<void>((resolve) => (lost = resolve));
  return { over, lost: () => lost() };
}

/** A lost connection is none: whoever was at the call is gone with it. */
function isCutOff({ code, unanswered }: CsiError): boolean {
  return unanswered && (code === "DEADLINE_EXCEEDED" || code === "CANCELLED");
}
