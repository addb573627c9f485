import { exactInteger } from "../../kube/json-text.ts";
import { DecodeFailure } from "./decode-failure.ts";

/** How a value is laid out, the lower three bits of every tag. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, groupStart: 3, groupEnd: 4, fixed32: 5 } as const;

const INT_BYTES_MAX = 10;

/**
 * A message of protobuf, read from front to back. It never reads past its end: whatever the bytes are,
 * every call either moves forward or throws a DecodeFailure, so any input ends.
 */
export class ProtobufReader {
  /** Of the tag read last. */
  fieldNumber = 0;
  wireType = 0;
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;
  /** The halves of the varint read last, as 32 bit integers. */
  #low = 0;
  #high = 0;

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#end;
  }

  /** False at the end of the message. */
  nextField(): boolean {
    if (this.isEmpty) return false;
    this.#readVarint();
    this.wireType = this.#low & 7;
    this.fieldNumber = ((this.#high << 29) | (this.#low >>> 3)) >>> 0;
    if (this.fieldNumber === 0 || this.fieldNumber > 0x1fffffff) {
      throw new DecodeFailure(`proto: illegal tag ${this.fieldNumber} (wire type ${this.wireType})`);
    }
    if (this.wireType === WIRE.groupEnd) throw new DecodeFailure("proto: wiretype end group for non-group");
    return true;
  }

  bool(): boolean {
    this.#expect(WIRE.varint);
    this.#readVarint();
    return (this.#low | this.#high) !== 0;
  }

  int32(): number {
    this.#expect(WIRE.varint);
    this.#readVarint();
    return this.#low | 0;
  }

  /** A number, or a bigint where that would be rounded. */
  int64(): number | bigint {
    this.#expect(WIRE.varint);
    this.#readVarint();
    const value = (this.#high | 0) * 2 ** 32 + (this.#low >>> 0);
    if (Number.isSafeInteger(value)) return value;
    return exactInteger((BigInt(this.#high | 0) << 32n) | BigInt(this.#low >>> 0));
  }

  /** The next of numbers that were packed into one value and so have no tags. */
  packedInt64(): number | bigint {
    this.wireType = WIRE.varint;
    return this.int64();
  }

  text(): string {
    const [start, end] = this.#slice();
    return this.#bytes.toString("utf8", start, end);
  }

  base64(): string {
    const [start, end] = this.#slice();
    return this.#bytes.toString("base64", start, end);
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const [start, end] = this.#slice();
    return this.#bytes.subarray(start, end);
  }

  message(): ProtobufReader {
    const [start, end] = this.#slice();
    return new ProtobufReader(this.#bytes, start, end);
  }

  /** Passes over the value of the current field. Groups are passed over by counting, not by recursion. */
  skip(): void {
    let openGroups = 0;
    do {
      if (this.wireType === WIRE.groupStart) openGroups++;
      else if (this.wireType === WIRE.groupEnd) openGroups--;
      else this.#skipValue();
      if (openGroups > 0) {
        this.#readVarint();
        this.wireType = this.#low & 7;
      }
    } while (openGroups > 0);
  }

  #skipValue(): void {
    switch (this.wireType) {
      case WIRE.varint:
        this.#readVarint();
        return;
      case WIRE.fixed64:
        this.#advance(8);
        return;
      case WIRE.bytes:
        this.#slice();
        return;
      case WIRE.fixed32:
        this.#advance(4);
        return;
      default:
        throw new DecodeFailure(`proto: illegal wireType ${this.wireType}`);
    }
  }

  /** Start and end of a value that carries its length. */
  #slice(): readonly [number, number] {
    this.#expect(WIRE.bytes);
    this.#readVarint();
    if (this.#high !== 0 || this.#low < 0) throw new DecodeFailure("unexpected EOF");
    const start = this.#at;
    this.#advance(this.#low);
    return [start, this.#at];
  }

  #advance(count: number): void {
    if (count > this.#end - this.#at) throw new DecodeFailure("unexpected EOF");
    this.#at += count;
  }

  #expect(wireType: number): void {
    if (this.wireType === wireType) return;
    throw new DecodeFailure(`proto: wrong wireType = ${this.wireType} for field number ${this.fieldNumber}`);
  }

  /** Seven bits a byte, the lowest first; 64 bits need ten bytes at most. */
  #readVarint(): void {
    this.#low = 0;
    this.#high = 0;
    for (let index = 0; index < INT_BYTES_MAX; index++) {
      if (this.#at >= this.#end) throw new DecodeFailure("unexpected EOF");
      const byte = this.#bytes[this.#at++] ?? 0;
      const bits = byte & 0x7f;
      if (index < 4) this.#low |= bits << (7 * index);
      else if (index === 4) {
        this.#low |= bits << 28;
        this.#high |= bits >> 4;
      } else this.#high |= bits << (7 * index - 32);
      if (byte < 0x80) return;
    }
    throw new DecodeFailure("proto: integer overflow");
  }
}
