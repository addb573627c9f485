import { Argument, Command } from "commander";
import { SCRIPTS, SHELLS, type Shell } from "../completion/scripts.ts";
import { printLine } from "../output/streams.ts";

export function completionCommand(): Command {
  return new Command("completion")
    .description("print a script that completes commands, flags, values and names of objects in a shell")
    .addArgument(new Argument("<shell>", "which shell loads it").choices(SHELLS))
    .addHelpText(
      "after",
      `
For this session:
  source <(mooring completion bash)
  source <(mooring completion zsh)
  mooring completion fish | source

Examples:
  mooring completion bash > /etc/bash_completion.d/mooring
  mooring completion zsh > ~/.zfunc/_mooring                          a folder of $fpath
  mooring completion fish > ~/.config/fish/completions/mooring.fish`,
    )
    .action((shell: Shell) => printLine(process.stdout, SCRIPTS[shell]));
}

/** What those scripts call. It is part of no help: only they know how to read its answer. */
export function completeCommand(): Command {
  const command = new Command("__complete").argument("[words...]");
  return command.action(async (words: readonly string[]) => {
    const { complete } = await import("../completion/complete.ts");
    const program = command.parent ?? command;
    // A cluster that does not answer leaves the line as it is; a message would be written into it.
    const lines = await complete(program, words).catch(() => []);
    for (const line of lines) printLine(process.stdout, line);
  });
}
