import { describe, expect, test } from "vitest";
import { givenServer } from "./scenario.testing.ts";

/** 2^62 + 1: a double has 4611686018427387904. */
const LONG = "4611686018427387905";
const DRIVERS = "/apis/storage.k8s.io/v1/csidrivers";
const DRIVER = `${DRIVERS}/d.io`;
const CONTENTS = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
const PODS = "/api/v1/namespaces/t/pods";
const TYPE = { kind: "CSIDriver", apiVersion: "storage.k8s.io/v1" };
const FIELD = "nodeAllocatableUpdatePeriodSeconds";

/** As text: the test must not round the number itself. */
function driver(seconds = LONG): string {
  const object = { ...TYPE, metadata: { name: "d.io" }, spec: { [FIELD]: 0 } };
  return JSON.stringify(object).replace(":0}", `:${seconds}}`);
}

const YAML = `kind: CSIDriver\napiVersion: storage.k8s.io/v1\nmetadata:\n  name: d.io\nspec:\n  ${FIELD}: ${LONG}\n`;

function pod(spec: string): string {
  return `{"metadata":{"name":"p"},"spec":{${spec}"containers":[{"name":"c","image":"i"}]}}`;
}

describe("a number of 64 bits that came in", () => {
  for (const [how, requests] of [
    ["by POST", [["POST", DRIVERS, driver(), "application/json"]]],
    ["by POST of YAML", [["POST", DRIVERS, YAML, "application/yaml"]]],
    [
      "by PUT",
      [
        ["POST", DRIVERS, driver("50"), "application/json"],
        [
          "PUT",
          DRIVER,
          driver().replace('"d.io"', '"d.io","resourceVersion":"<latest>"'),
          "application/json",
        ],
      ],
    ],
    [
      "by merge patch",
      [
        ["POST", DRIVERS, driver("50"), "application/json"],
        ["PATCH", DRIVER, driver(), "application/merge-patch+json"],
      ],
    ],
    [
      "by strategic merge patch",
      [
        ["POST", DRIVERS, driver("50"), "application/json"],
        ["PATCH", DRIVER, driver(), "application/strategic-merge-patch+json"],
      ],
    ],
    [
      "by JSON patch",
      [
        ["POST", DRIVERS, driver("50"), "application/json"],
        [
          "PATCH",
          DRIVER,
          `[{"op":"replace","path":"/spec/${FIELD}","value":${LONG}}]`,
          "application/json-patch+json",
        ],
      ],
    ],
    ["by apply of JSON", [["PATCH", `${DRIVER}?fieldManager=m`, driver(), "application/apply-patch+yaml"]]],
    ["by apply of YAML", [["PATCH", `${DRIVER}?fieldManager=m`, YAML, "application/apply-patch+yaml"]]],
    [
      "and was there when something else changed",
      [
        ["POST", DRIVERS, driver(), "application/json"],
        ["PATCH", DRIVER, '{"metadata":{"labels":{"a":"b"}}}', "application/merge-patch+json"],
        ["PATCH", DRIVER, '{"metadata":{"labels":{"a":"c"}}}', "application/strategic-merge-patch+json"],
        [
          "PATCH",
          `${DRIVER}?fieldManager=m`,
          JSON.stringify({ ...TYPE, metadata: { name: "d.io", labels: { d: "e" } } }),
          "application/apply-patch+yaml",
        ],
      ],
    ],
  ] as const) {
    test(`${how} goes out with the same digits, in every form`, async () => {
      const { ok, send, watch, store } = await givenServer();
      const watching = await watch(`${DRIVERS}?watch=1`, {});

      for (const [method, path, body, type] of requests) {
        await ok(method, path, body.replace("<latest>", String(store.revision)), { type });
      }

      for (const [path, accept] of [
        [DRIVER, "application/json"],
        [`${DRIVER}?pretty=true`, "application/json"],
        [DRIVER, "application/yaml"],
        [DRIVERS, "application/json"],
        [DRIVERS, "application/yaml"],
        [`${DRIVERS}?includeObject=Object`, "application/json;as=Table;v=v1;g=meta.k8s.io"],
      ] as const) {
        const { text } = await send("GET", path, undefined, { headers: { accept } });
        expect(text, `${path} ${accept}`).toMatch(new RegExp(`${FIELD}"?: ?${LONG}\\b`));
      }
      expect(await watching.text()).toMatch(new RegExp(`${FIELD}":${LONG}\\b`));
    });
  }

  test("is equal to itself: writing it again changes nothing", async () => {
    const { ok, store } = await givenServer();
    await ok("POST", DRIVERS, driver());
    const { revision } = store;

    await ok("PATCH", DRIVER, driver(), { type: "application/merge-patch+json" });
    await ok("PUT", DRIVER, driver().replace('"d.io"', `"d.io","resourceVersion":"${revision}"`));

    expect(store.revision).toBe(revision);
  });

  test("is told from its neighbour, which is the same double", async () => {
    const { ok, send } = await givenServer();
    await ok("POST", DRIVERS, driver());
    const next = LONG.replace(/5$/, "6");

    const test = (value: string) =>
      send("PATCH", DRIVER, `[{"op":"test","path":"/spec/${FIELD}","value":${value}}]`, {
        type: "application/json-patch+json",
      });

    expect([(await test(next)).status, (await test(LONG)).status]).toEqual([422, 200]);
  });
});

test("a custom resource keeps it as well, also in its status", async () => {
  const { ok, send } = await givenServer();
  await ok("POST", CONTENTS, {
    metadata: { name: "c" },
    spec: {
      deletionPolicy: "Delete",
      driver: "d.io",
      source: { snapshotHandle: "h" },
      volumeSnapshotRef: { name: "s", namespace: "t" },
    },
  });

  const status = `{"status":{"creationTime":1763431190123456789,"restoreSize":${LONG},"readyToUse":true}}`;
  await ok("PATCH", `${CONTENTS}/c/status`, status, { type: "application/merge-patch+json" });

  const { text } = await send("GET", `${CONTENTS}/c`);
  expect(text).toContain('"creationTime":1763431190123456789');
  expect(text).toContain(`"restoreSize":${LONG}`);
});

test("a quantity without quotes keeps its digits", async () => {
  const { ok, send } = await givenServer();
  const spec = '{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":9007199254740993}}}';

  await ok("POST", "/api/v1/namespaces/t/persistentvolumeclaims", `{"metadata":{"name":"c"},"spec":${spec}}`);

  const { text } = await send("GET", "/api/v1/namespaces/t/persistentvolumeclaims/c");
  expect(text).toContain('"storage":"9007199254740993"');
});

describe("where such a number makes no sense", () => {
  test("the refusal has its digits", async () => {
    const { send } = await givenServer();
    const answer = await send("POST", PODS, pod(`"activeDeadlineSeconds":${LONG},`));

    expect([answer.status, answer.body.message]).toEqual([422, expect.stringContaining(LONG)]);
  });

  for (const [what, given, options] of [
    ["of its own", `"terminationGracePeriodSeconds":${LONG},`, ""],
    ["that was asked for", "", `{"gracePeriodSeconds":${LONG}}`],
  ] as const) {
    test(`a grace period ${what} lasts as long as can be told`, async () => {
      const { ok, send } = await givenServer();
      await ok("POST", PODS, pod(`"nodeName":"n",${given}`));

      const { status, body } = await send("DELETE", `${PODS}/p`, options === "" ? undefined : options);

      expect([status, body.metadata.deletionTimestamp?.slice(0, 2)]).toEqual([200, "21"]);
    });
  }
});
