import { evaluationError } from "../../cel/errors.ts";
import { declare, type Library } from "../../cel/functions.ts";
import { toInt } from "../../cel/numbers.ts";
import { OpaqueValue } from "../../cel/values.ts";
import { parseQuantity } from "../../kube/quantity.ts";

const NANOS_PER_UNIT = 1_000_000_000n;

class QuantityValue extends OpaqueValue {
  readonly type = "kubernetes.Quantity";
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    super();
    this.nanos = nanos;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && other.nanos === this.nanos;
  }
}

const TYPE = "kubernetes.Quantity";

/** Amounts with a unit, as Kubernetes lets expressions compare and add them. */
export const QUANTITIES: Library = [
  declare(`quantity(string) ${TYPE}`, (text: string) => {
    const nanos = tryParse(text);
    if (nanos === undefined) throw evaluationError(`quantity: ${JSON.stringify(text)} is not one`);
    return new QuantityValue(nanos);
  }),
  declare("isQuantity(string) bool", (text: string) => tryParse(text) !== undefined),
  declare(`${TYPE} -> sign() int`, ({ nanos }: QuantityValue) => order(nanos, 0n)),
  declare(`${TYPE} -> isInteger() bool`, (value: QuantityValue) => wholeOf(value) !== undefined),
  declare(`${TYPE} -> asInteger() int`, (value: QuantityValue) => {
    const whole = wholeOf(value);
    if (whole === undefined) throw evaluationError("cannot convert value to integer");
    return whole;
  }),
  declare(`${TYPE} -> asApproximateFloat() double`, ({ nanos }: QuantityValue) => Number(nanos) / 1e9),
  declare(
    `${TYPE} -> add(${TYPE}) ${TYPE}`,
    (a: QuantityValue, b: QuantityValue) => new QuantityValue(a.nanos + b.nanos),
  ),
  declare(
    `${TYPE} -> add(int) ${TYPE}`,
    (a: QuantityValue, b: bigint) => new QuantityValue(a.nanos + b * NANOS_PER_UNIT),
  ),
  declare(
    `${TYPE} -> sub(${TYPE}) ${TYPE}`,
    (a: QuantityValue, b: QuantityValue) => new QuantityValue(a.nanos - b.nanos),
  ),
  declare(
    `${TYPE} -> sub(int) ${TYPE}`,
    (a: QuantityValue, b: bigint) => new QuantityValue(a.nanos - b * NANOS_PER_UNIT),
  ),
  declare(`${TYPE} -> compareTo(${TYPE}) int`, (a: QuantityValue, b: QuantityValue) =>
    order(a.nanos, b.nanos),
  ),
  declare(
    `${TYPE} -> isGreaterThan(${TYPE}) bool`,
    (a: QuantityValue, b: QuantityValue) => a.nanos > b.nanos,
  ),
  declare(`${TYPE} -> isLessThan(${TYPE}) bool`, (a: QuantityValue, b: QuantityValue) => a.nanos < b.nanos),
];

function tryParse(text: string): bigint | undefined {
  try {
    return parseQuantity(text).nanos;
  } catch {
    return undefined;
  }
}

function wholeOf({ nanos }: QuantityValue): bigint | undefined {
  return nanos % NANOS_PER_UNIT === 0n ? toInt(nanos / NANOS_PER_UNIT) : undefined;
}

function order(a: bigint, b: bigint): bigint {
  return a < b ? -1n : a > b ? 1n : 0n;
}
