import type { Metrics } from "../../base/metrics.ts";
import type { Method } from "../transport/transport.ts";

/**
 * The metrics of client-go's requests, with its names, labels and buckets, so that dashboards and alerts made for
 * kube-controller-manager and the sidecars work unchanged; and what those cannot tell, by resource, under a name of ours.
 */
export interface RequestMetrics {
  /** How long it waited for its turn. */
  waited(method: Method, ms: number): void;
  /** One try, as it ended. */
  ended(request: EndedRequest): void;
}

export interface EndedRequest {
  readonly method: Method;
  readonly verb: string;
  readonly resource: string;
  /** The HTTP status; undefined where there was no answer. */
  readonly status: number | undefined;
  /** The code of the error that stood in for an answer. */
  readonly error?: string | undefined;
  readonly tookMs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Tries before this one. */
  readonly retries: number;
}

const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const BYTES = [64, 256, 512, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
/** What client-go writes for a request that got no answer. */
const NO_ANSWER = "<error>";

export function createRequestMetrics(metrics: Metrics, host: string): RequestMetrics {
  const requests = metrics.counter({
    name: "rest_client_requests_total",
    help: "Requests by the HTTP status of their answer, <error> where there was none.",
    labels: ["code", "method", "host"],
  });
  const durations = metrics.histogram({
    name: "rest_client_request_duration_seconds",
    help: "Time from sending a request to the end of its answer.",
    labels: ["verb", "host"],
    buckets: SECONDS,
  });
  const waits = metrics.histogram({
    name: "rest_client_rate_limiter_duration_seconds",
    help: "How long requests waited in this process for their turn.",
    labels: ["verb", "host"],
    buckets: SECONDS,
  });
  const sent = metrics.histogram({
    name: "rest_client_request_size_bytes",
    help: "Size of request bodies.",
    labels: ["verb", "host"],
    buckets: BYTES,
  });
  const received = metrics.histogram({
    name: "rest_client_response_size_bytes",
    help: "Size of the bodies of answers; streams are not counted.",
    labels: ["verb", "host"],
    buckets: BYTES,
  });
  const retries = metrics.counter({
    name: "rest_client_request_retries_total",
    help: "Tries after the first, by the status they ended with.",
    labels: ["code", "verb", "host"],
  });
  const byResource = metrics.counter({
    name: "mooring_client_requests_total",
    help: "Requests by verb, resource and answer: the HTTP status, or the code of the error that stood in for one.",
    labels: ["verb", "resource", "code"],
  });
  return {
    waited: (method, ms) => waits.observe(ms / 1_000, { verb: method, host }),
    ended({ method, verb, resource, status, error, tookMs, ...rest }) {
      const code = status === undefined ? NO_ANSWER : String(status);
      const labels = { verb: method, host };
      requests.inc({ code, method, host });
      durations.observe(tookMs / 1_000, labels);
      if (rest.requestBytes > 0) sent.observe(rest.requestBytes, labels);
      if (rest.responseBytes > 0) received.observe(rest.responseBytes, labels);
      if (rest.retries > 0) retries.inc({ code, verb: method, host });
      byResource.inc({ verb, resource, code: status === undefined ? (error ?? NO_ANSWER) : code });
    },
  };
}
