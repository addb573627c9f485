import { exitCodeOf } from "./exit.ts";
import { createProgram } from "./program.ts";

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = exitCodeOf(error, (line) => process.stderr.write(`${line}\n`));
}
