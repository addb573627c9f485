/**
 * For commands that answer and end: a reader that went away (`| head`) has what it wanted, and there is nothing left to do.
 * An answer that could not be written for another reason (`> file` on a full disk) is no answer.
 */
export function printLine(stream: NodeJS.WriteStream, text: string): void {
  printText(stream, `${text}\n`);
}

/** The same for what has its own ends of lines, as help does. */
export function printText(stream: NodeJS.WriteStream, text: string): void {
  if (stream.listenerCount("error") === 0)
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // Without an argument: what has failed by then says so, reader or not.
      if (error.code === "EPIPE") process.exit();
      process.stderr.write(`mooring: cannot write the answer: ${error.message}\n`);
      process.exit(1);
    });
  stream.write(text);
}

/**
 * For a command that has to clean up before it ends: `onGone` is told once that nobody reads any more, and lines after that
 * are dropped. Lines that find no room (`> file` on a full disk) are dropped alone: the command goes on, as what it
 * does is not what it prints.
 */
export function createLinePrinter(stream: NodeJS.WriteStream, onGone: () => void): (text: string) => void {
  let gone = false;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    // Lines that were on their way fail one by one.
    if (gone || error.code !== "EPIPE") return;
    gone = true;
    onGone();
  });
  return (text) => {
    if (!gone) stream.write(`${text}\n`);
  };
}

/** Complaints that nobody can read end nothing: without a listener node would end with a stack trace, mounts left. */
export function ignoreFailures(stream: NodeJS.WriteStream): void {
  stream.on("error", () => undefined);
}
