import { expect, test } from "vitest";
import { fieldText, resourceText } from "./downward-fields.ts";
import { pod } from "./plugins.testing.ts";

const node = { metadata: {}, status: { allocatable: { cpu: "3500m", memory: "4Gi" } } };
const containers = [
  { name: "c", resources: { limits: { memory: "64Mi", "hugepages-2Mi": "4Mi" }, requests: { cpu: "250m" } } },
];

for (const [resource, divisor, expected] of [
  ["limits.memory", undefined, "67108864"],
  ["limits.memory", "1Mi", "64"],
  ["limits.memory", "60Mi", "2"], // Rounded up.
  ["limits.cpu", undefined, "4"], // The node's 3.5, since the container has no limit.
  ["limits.cpu", "1m", "3500"],
  ["requests.cpu", "1m", "250"],
  ["requests.cpu", "0", "1"], // No divisor is one.
  ["requests.memory", undefined, "0"],
  ["limits.hugepages-2Mi", "1Mi", "4"],
  ["limits.ephemeral-storage", undefined, "0"],
] as const)
  test(`${resource} in units of ${divisor ?? "1"} is ${expected}`, () => {
    const selector = { containerName: "c", resource, ...(divisor !== undefined && { divisor }) };

    expect(resourceText(pod({ containers }), node, selector)).toBe(expected);
  });

for (const [fieldPath, expected] of [
  ["metadata.name", "p1"],
  ["metadata.namespace", "ns"],
  ["metadata.uid", "u1"],
  ["metadata.labels['a/b']", "1"],
  ["metadata.labels['none']", ""],
  ["metadata.annotations", 'k="two\\nlines \\\\ \\"q\\" é\\x00\\u200b"'],
] as const)
  test(`${fieldPath} reads ${JSON.stringify(expected)}`, () => {
    const one = pod({}, { labels: { "a/b": "1" }, annotations: { k: 'two\nlines \\ "q" é\0\u200b' } });

    expect(fieldText(one, fieldPath)).toBe(expected);
  });

test("fields that are none are refused", () => {
  expect(() => fieldText(pod(), "spec.nodeName")).toThrow("unsupported fieldPath: spec.nodeName");
  expect(() => fieldText(pod(), "constructor")).toThrow("unsupported fieldPath");
  expect(() => resourceText(pod(), node, { containerName: "x", resource: "limits.cpu" })).toThrow(
    "container x not found",
  );
  expect(() => resourceText(pod(), node, { containerName: "c", resource: "limits.x" })).toThrow(
    "unsupported container resource",
  );
});
