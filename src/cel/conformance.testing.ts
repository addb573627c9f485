import { getConformanceSuite, type IncrementalTestSuite } from "@bufbuild/cel-spec/testdata/tests.js";
import type { SimpleTest } from "@bufbuild/cel-spec/cel/expr/conformance/test/simple_pb.js";
import type { Value as WireValue } from "@bufbuild/cel-spec/cel/expr/value_pb.js";
import type { Type as WireType } from "@bufbuild/cel-spec/cel/expr/checked_pb.js";
import { Uint } from "./numbers.ts";
import { DYN, listOf, mapOf, scalar, type Type } from "./types.ts";
import { BuiltMap, mapKey, TypeValue, type Value } from "./values.ts";

/** For tests: the suite of the CEL project itself, in our values. */
export interface ConformanceCase {
  /** As in `string_ext`. */
  readonly file: string;
  /** As in `string_ext / char_at / middle_index`. */
  readonly name: string;
  readonly test: SimpleTest;
}

export function conformanceCases(): ConformanceCase[] {
  return getConformanceSuite().suites.flatMap((suite) => casesOf(suite, suite.name, suite.name));
}

function casesOf(suite: IncrementalTestSuite, file: string, path: string): ConformanceCase[] {
  return [
    ...suite.tests.map(({ name, original }) => ({ file, name: `${path} / ${name}`, test: original })),
    ...suite.suites.flatMap((inner) => casesOf(inner, file, `${path} / ${inner.name}`)),
  ];
}

/** Undefined for what is not of our values: messages and enums of protobuf. */
export function fromWire({ kind }: WireValue): Value | undefined {
  switch (kind.case) {
    case "nullValue":
      return null;
    case "boolValue":
    case "int64Value":
    case "doubleValue":
    case "stringValue":
    case "bytesValue":
      return kind.value;
    case "uint64Value":
      return new Uint(kind.value);
    case "typeValue":
      return new TypeValue(kind.value);
    case "listValue": {
      const items = kind.value.values.map(fromWire);
      return items.every((item) => item !== undefined) ? items : undefined;
    }
    case "mapValue": {
      const entries = kind.value.entries.map(({ key, value }) => {
        const [left, right] = [key && fromWire(key), value && fromWire(value)];
        return left === undefined || right === undefined
          ? undefined
          : ([mapKey(left) ?? "", [left, right]] as const);
      });
      return entries.every((entry) => entry !== undefined) ? new BuiltMap(new Map(entries)) : undefined;
    }
    case "enumValue":
    case "objectValue":
    case undefined:
      return undefined;
  }
}

const PRIMITIVES = [undefined, "bool", "int", "uint", "double", "string", "bytes"] as const;
const WELL_KNOWN = [undefined, undefined, "timestamp", "duration"] as const;

export function typeFromWire(type: WireType | undefined): Type {
  const kind = type?.typeKind;
  if (kind?.case === "primitive") return scalar(PRIMITIVES[kind.value] ?? "string");
  if (kind?.case === "wellKnown") return scalar(WELL_KNOWN[kind.value] ?? "timestamp");
  if (kind?.case === "listType") return listOf(typeFromWire(kind.value.elemType));
  if (kind?.case === "mapType")
    return mapOf(typeFromWire(kind.value.keyType), typeFromWire(kind.value.valueType));
  return DYN;
}
