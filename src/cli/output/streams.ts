/** For commands that answer and end: a reader that went away (`| head`) has what it wanted, and there is nothing left to do. */
export function printLine(stream: NodeJS.WriteStream, text: string): void {
  if (stream.listenerCount("error") === 0) whenReaderGone(stream, () => process.exit(0));
  stream.write(`${text}\n`);
}

/**
 * For a command that has to clean up before it ends: `onGone` is told once that nobody reads any more, and lines after that
 * are dropped.
 */
export function createLinePrinter(stream: NodeJS.WriteStream, onGone: () => void): (text: string) => void {
  let gone = false;
  whenReaderGone(stream, () => {
    // Lines that were on their way fail one by one.
    if (gone) return;
    gone = true;
    onGone();
  });
  return (text) => {
    if (!gone) stream.write(`${text}\n`);
  };
}

/** No failure of ours: without a listener node would end with a stack trace. */
function whenReaderGone(stream: NodeJS.WriteStream, tell: () => void): void {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    tell();
  });
}
