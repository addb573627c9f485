import type { StoredObject, StoreKey } from "./store.ts";

/**
 * Texts of stored objects, outside the JavaScript heap. 100,000 objects of 1 kB are 115 MB of text that hardly ever changes:
 * in the heap the collector copies and marks them again and again, and lets the heap grow to twice their size
 * before it looks at them. Here they lie end to end in slabs that it does not look into.
 *
 * The newest stay strings, because watchers are about to read them; everything else is decoded when it is read, in
 * about 0.5 µs a kB.
 */

/** An object in one of the slabs. Readable for as long as anybody holds it, also after its release. */
export class KeptObject implements StoredObject {
  readonly key: StoreKey;
  readonly revision: number;
  readonly chars: number;
  /** Itself while it is new. This and what follows is for `Texts` only, which may move it. */
  place: string | Slab;
  start = 0;
  bytes = 0;
  isReleased = false;

  constructor(key: StoreKey, revision: number, text: string) {
    this.key = key;
    this.revision = revision;
    this.chars = text.length;
    this.place = text;
  }

  get text(): string {
    return typeof this.place === "string" ? this.place : this.place.read(this);
  }
}

/** One piece of memory that is only ever written to at its end. */
class Slab {
  readonly #memory: Buffer;
  readonly #objects: KeptObject[] = [];
  #usedBytes = 0;
  #uselessBytes = 0;

  constructor(bytes: number) {
    this.#memory = Buffer.allocUnsafeSlow(bytes);
  }

  get isMostlyUseless(): boolean {
    return this.#uselessBytes * 2 > this.#memory.length;
  }

  hasRoom(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#memory.length;
  }

  add(object: KeptObject, text: string, bytes: number): void {
    this.#memory.write(text, this.#usedBytes, bytes === text.length ? "latin1" : "utf8");
    object.start = this.#usedBytes;
    object.bytes = bytes;
    object.place = this;
    this.#objects.push(object);
    this.#usedBytes += bytes;
  }

  /** As many bytes as characters is ASCII, which is read three times as fast. */
  read({ start, bytes, chars }: KeptObject): string {
    return this.#memory.toString(bytes === chars ? "latin1" : "utf8", start, start + bytes);
  }

  forget({ bytes }: KeptObject): void {
    this.#uselessBytes += bytes;
  }

  takeAll(): readonly KeptObject[] {
    return this.#objects.splice(0);
  }
}

/** Large enough that the system takes it back when it is free, small enough that a last one half full is nothing. */
const SLAB_BYTES = 512 * 1024;
/**
 * The newest texts that stay strings, about 200 of 1 kB. Few, so that most are packed before the collector has moved
 * them to its old generation: with 4 MB of them, that was 30 MB larger after filling up with 100,000 objects.
 */
const FRESH_CHARS_MAX = 256 * 1024;

export class Texts {
  #slab = new Slab(SLAB_BYTES);
  /** The newest objects, oldest first; those before `#head` are gone, and the array is cut when half of it is waste. */
  #fresh: (KeptObject | undefined)[] = [];
  #head = 0;
  #freshChars = 0;

  /** A new object, which stays a string for now. */
  keep(key: StoreKey, { revision, text }: StoredObject): KeptObject {
    const object = new KeptObject(key, revision, text);
    this.#fresh.push(object);
    this.#freshChars += object.chars;
    while (this.#freshChars > FRESH_CHARS_MAX) this.#packOldest();
    return object;
  }

  /** Nobody will look it up any more, though somebody may still be reading it. */
  release(object: KeptObject): void {
    if (object.isReleased) return;
    object.isReleased = true;
    const slab = object.place;
    if (typeof slab === "string") return;
    slab.forget(object);
    if (slab !== this.#slab && slab.isMostlyUseless) this.#empty(slab);
  }

  #packOldest(): void {
    const object = this.#fresh[this.#head];
    // Not held until the array is cut: a thousand large objects hold a hundred MB of slabs.
    this.#fresh[this.#head++] = undefined;
    if (object !== undefined) {
      this.#freshChars -= object.chars;
      if (!object.isReleased) this.#pack(object);
    }
    if (this.#head > 1_024 && this.#head * 2 > this.#fresh.length) {
      this.#fresh = this.#fresh.slice(this.#head);
      this.#head = 0;
    }
  }

  #pack(object: KeptObject): void {
    const { text } = object;
    const bytes = Buffer.byteLength(text);
    this.#slabFor(bytes).add(object, text, bytes);
  }

  /** A large text gets one of its own, instead of leaving another half empty. */
  #slabFor(bytes: number): Slab {
    if (bytes > SLAB_BYTES / 4) return new Slab(bytes);
    if (!this.#slab.hasRoom(bytes)) this.#beginSlab();
    return this.#slab;
  }

  #beginSlab(): void {
    const full = this.#slab;
    this.#slab = new Slab(SLAB_BYTES);
    if (full.isMostlyUseless) this.#empty(full);
  }

  /** Moves what is left, less than half, so that all of it is free: moving a byte frees at least another. */
  #empty(slab: Slab): void {
    for (const object of slab.takeAll()) if (!object.isReleased) this.#pack(object);
  }
}
