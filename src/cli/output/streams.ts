/** A reader that went away (`| head`) is no failure of ours: node would end with a stack trace otherwise. */
export function printLine(stream: NodeJS.WriteStream, text: string): void {
  if (stream.listenerCount("error") === 0) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      process.exit(0);
    });
  }
  stream.write(`${text}\n`);
}
