import { describe, expect, test } from "vitest";
import recording from "../../../test/fixtures/apiserver/17-accept.json" with { type: "json" };
import { StatusError } from "../errors.ts";
import { contentType, endpointOf, negotiate, type Endpoint, type Representation } from "./accept.ts";
import { stepsOf } from "./recordings.testing.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const TABLE_BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const DISCOVERY_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
const PROTOBUF = "application/vnd.kubernetes.protobuf";

describe("recorded Accept headers", () => {
  for (const { request, response } of stepsOf(recording)) {
    const accept = request.headers["Accept"] ?? "";
    test(`"${accept}" gets ${response.status}`, () => {
      const answer = answerTo(accept);

      // This server never writes protobuf; whoever asks for it first gets what he names next.
      const type = response.headers?.["content-type"]?.replace(PROTOBUF, "application/json");
      expect([answer.status, answer.type]).toEqual([response.status, type]);
      if (response.status === 200) return;
      const message = (response.body as { message: string }).message.replace(`, ${PROTOBUF}`, "");
      expect(answer.error).toEqual({ ...(response.body as object), message });
    });
  }
});

describe("what a client gets", () => {
  const object: Representation = { kind: "object" };
  const table: Representation = { kind: "table", version: "v1" };
  const metadata: Representation = { kind: "metadata", version: "v1" };

  for (const [endpoint, accept, expected] of [
    ["question", undefined, object],
    ["question", METADATA, metadata],
    ["question", `${TABLE},application/json`, object],
    ["object", undefined, object],
    ["object", " ", object],
    ["object", "APPLICATION/JSON; charset=utf-8", object],
    ["object", `${TABLE},${TABLE_BETA},application/json`, table],
    ["object", `${TABLE_BETA},${TABLE}`, { kind: "table", version: "v1beta1" }],
    ["list", `${TABLE},application/json`, table],
    ["watch", TABLE, table],
    ["watch", `${TABLE};stream=watch`, table],
    ["object", `application/json;as="Table";v=v1;g=meta.k8s.io`, table],
    ["object", "*/*;as=Table;v=v1;g=meta.k8s.io", table],
    ["object", METADATA, metadata],
    ["watch", METADATA, metadata],
    ["list", METADATA_LIST, metadata],
    // What client-go's metadata informers send.
    [
      "list",
      `${METADATA_LIST.replace("application/json", PROTOBUF)},${METADATA_LIST},application/json`,
      metadata,
    ],
    ["list", `${METADATA},application/json`, object],
    ["object", `${METADATA_LIST},application/json`, object],
    ["discovery", `${DISCOVERY},${DISCOVERY_BETA},application/json`, { kind: "discovery", version: "v2" }],
    ["discovery", `${DISCOVERY_BETA},application/json`, { kind: "discovery", version: "v2beta1" }],
    ["discovery", "application/json", object],
    ["discovery", `${DISCOVERY.replace("v=v2", "v=v3")},*/*`, object],
    ["object", `${DISCOVERY},application/json`, object],
    ["document", `${TABLE},application/json`, object],
    // What the client likes better comes first, wherever it stands; what it names, before a wildcard.
    ["object", `application/json;q=0.5,${TABLE};q=0.9`, table],
    ["object", `*/*,${TABLE}`, table],
    ["object", `${TABLE};q=0,application/json`, object],
    ["object", "application/json;q=much", object],
    ["watch", "application/json;stream=watch", object],
    ["watch", "application/yaml,application/json", object],
  ] as const satisfies readonly (readonly [Endpoint, string | undefined, Representation])[]) {
    test(`${endpoint}: ${accept ?? "(no header)"} is ${expected.kind}`, () => {
      expect(negotiate(accept, endpoint)).toEqual({ as: expected, encoding: "json" });
    });
  }

  for (const [endpoint, accept] of [
    ["object", "application/json;as=Table;v=v2;g=meta.k8s.io"],
    ["object", "application/json;as=Table;v=v1;g=other.io"],
    ["object", "application/json;as=Table"],
    ["object", "application/json;v=v1"],
    ["object", METADATA_LIST],
    ["list", METADATA],
    ["list", "application/json;stream=tail"],
    ["watch", "application/yaml"],
    ["document", TABLE],
    ["discovery", TABLE],
  ] as const) {
    test(`${endpoint}: ${accept} alone is refused with what could be had`, () => {
      const { status, error } = answerTo(accept, endpoint);

      expect(status).toBe(406);
      expect(error?.message).toBe(
        "only the following media types are accepted: application/json, application/yaml",
      );
      expect(error).not.toHaveProperty("details");
    });
  }

  for (const accept of [
    PROTOBUF,
    "application/cbor",
    "text/html",
    "application/json;q=0",
    ",",
    "__proto__",
  ]) {
    test(`${accept} alone is refused before its form is looked at`, () => {
      const { status, error } = answerTo(accept);

      expect([status, error?.details]).toEqual([406, {}]);
      expect(error?.message).toMatch(/^406: Not Acceptable\n\nAvailable representations: /);
    });
  }

  test("the answer names its form only for discovery, where clients look for it", () => {
    expect(contentType(negotiate(TABLE, "list"))).toBe("application/json");
    expect(contentType(negotiate("application/yaml", "object"))).toBe("application/yaml");
    expect(contentType(negotiate(DISCOVERY, "discovery"))).toBe(DISCOVERY);
  });
});

test("every verb that answers with a list can be asked for a list's forms", () => {
  expect((["get", "create", "update", "patch", "delete"] as const).map((verb) => endpointOf(verb))).toEqual(
    Array(5).fill("object"),
  );
  expect((["list", "deletecollection"] as const).map((verb) => endpointOf(verb))).toEqual(["list", "list"]);
  expect(endpointOf("watch")).toBe("watch");
});

function answerTo(accept: string, endpoint: Endpoint = "object") {
  try {
    return { status: 200, type: contentType(negotiate(accept, endpoint)) };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { status: error.status.code, type: "application/json", error: error.status };
  }
}
