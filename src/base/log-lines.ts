/** Takes whole lines and never throws: work must not fail because nobody could write down that it was done. */
export interface LineWriter {
  write(line: string): void;
}

export interface LineTarget {
  /** Writes from `start` on and returns how many bytes were taken; throws as the kernel answers. */
  readonly write: (bytes: Uint8Array, start: number) => number;
  /** Lets a reader that is behind catch up a little. */
  readonly pause: (ms: number) => void;
  /** What stands in the log for lines that were lost. */
  readonly describeLoss: (loss: Loss) => string;
}

export interface Loss {
  readonly lines: number;
  /** The kernel's word for the first of them: ENOSPC, EPIPE, EAGAIN. */
  readonly code: string;
}

/**
 * A reader that is busy for a moment loses nothing; one that has stopped holds up the process for this long, once. Every line
 * that goes out at once earns one pause: a reader that is always behind holds it up for a millisecond a line at most.
 */
const PAUSES_MAX = 50;
const PAUSE_MS = 1;

/**
 * Lines go out at once: the last before a crash are the ones that matter. One that cannot be written (a full disk, a
 * reader that has gone or does not read) is lost and counted, and the count is the first that is written
 * when writing works again. A line that was cut in the middle is ended there, so that the next one can be read.
 */
export function createLineWriter({ write, pause, describeLoss }: LineTarget): LineWriter {
  let loss: Loss | undefined;
  let isTorn = false;
  let pausesLeft = PAUSES_MAX;

  function writeAll(text: string): void {
    const bytes = Buffer.from(isTorn ? `\n${text}` : text);
    let [start, paused] = [0, false];
    while (start < bytes.length) {
      try {
        start += write(bytes, start);
      } catch (error) {
        if (codeOf(error) === "EAGAIN" && loss === undefined && pausesLeft > 0) {
          pausesLeft--;
          paused = true;
          pause(PAUSE_MS);
          continue;
        }
        isTorn ||= start > 0;
        // All but its end is there, and the next line supplies that.
        if (start === bytes.length - 1) return;
        throw error;
      }
    }
    isTorn = false;
    if (!paused) pausesLeft = Math.min(PAUSES_MAX, pausesLeft + 1);
  }

  return {
    write(line) {
      try {
        if (loss !== undefined) writeAll(describeLoss(loss));
        loss = undefined;
        writeAll(line);
      } catch (error) {
        loss = { lines: (loss?.lines ?? 0) + 1, code: loss?.code ?? codeOf(error) };
      }
    },
  };
}

function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : String(error);
}
