import { expect, test } from "vitest";
import { createPinoLogger } from "./pino-log.ts";
import { createPromMetrics } from "./prom-metrics.ts";

test("a log line is JSON with level, time, message and fields, and without secrets", () => {
  const lines: string[] = [];
  const log = createPinoLogger({ destination: { write: (line) => void lines.push(line) } }).with({
    process: "controller",
  });

  log.info("published", { volume: "pvc-7f", tookMs: 12, token: "abc" });
  log.debug("not at this level");

  expect(lines).toHaveLength(1);
  const line = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
  expect(line).toMatchObject({
    level: "info",
    message: "published",
    process: "controller",
    volume: "pvc-7f",
    tookMs: 12,
  });
  expect(line["time"]).toMatch(/^\d{4}-\d\d-\d\dT/);
  expect(lines[0]).not.toContain("abc");
});

test("metrics render as Prometheus text; one name is one metric whoever asks for it", async () => {
  const metrics = createPromMetrics();
  const spec = { name: "events_total", help: "Events.", labels: ["resource"] as const };
  metrics.counter(spec).inc({ resource: "pods" });
  metrics.counter(spec).inc({ resource: "pods" }, 2);
  for (const resource of ["pods", "nodes"]) {
    metrics.gauge({
      name: "size",
      help: "Size.",
      labels: ["resource"],
      collect: (gauge) => gauge.set(5, { resource }),
    });
  }
  metrics.histogram({ name: "took_seconds", help: "Took.", buckets: [0.1, 1] }).observe(0.5);

  const text = await metrics.render();

  expect(text).toContain('events_total{resource="pods"} 3');
  expect(text).toContain('size{resource="pods"} 5');
  expect(text).toContain('size{resource="nodes"} 5');
  expect(text).toContain('took_seconds_bucket{le="1"} 1');
  expect(text).toContain('took_seconds_bucket{le="0.1"} 0');
});

test("one name with two sets of labels is a mistake that names both", () => {
  const metrics = createPromMetrics();
  metrics.counter({ name: "x_total", help: "X.", labels: ["a"] });

  expect(() => metrics.counter({ name: "x_total", help: "X.", labels: ["b"] })).toThrow(/x_total.*"b".*"a"/);
});
