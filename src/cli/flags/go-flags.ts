import type { Command } from "commander";

/**
 * Lets a command take `-flag` for `--flag`, as Go's flag package does: manifests written for upstream's programs use
 * both. What has one letter and no value behind a `=`, or is a number, is left as it is: `-v=5` is `--v=5`, `-v 5` is
 * commander's own.
 */
export function goFlags(command: Command): Command {
  const parseOptions = command.parseOptions.bind(command);
  command.parseOptions = (args) => parseOptions(normalized(args));
  return command;
}

function normalized(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  return args.map((arg, index) => {
    const isFlag = /^-[a-z]([a-z0-9-]+(=|$)|=)/i.test(arg);
    return isFlag && (end < 0 || index < end) ? `-${arg}` : arg;
  });
}
