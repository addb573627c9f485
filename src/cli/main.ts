import { exitCodeOf } from "./exit.ts";
import { ignoreFailures } from "./output/streams.ts";
import { createProgram } from "./program.ts";

// Also what makes a pipe on stderr non-blocking: log lines are written to the descriptor itself, and a pipe that is full and
// never read would stop the process in its next line (test/long/cli-unread-pipe.test.ts).
ignoreFailures(process.stderr);
try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`));
}
