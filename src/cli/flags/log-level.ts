import { Option } from "commander";
import type { LogLevel } from "../../base/log.ts";

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function logLevelOption(): Option {
  return new Option("--log-level <level>", "the least important lines to write to stderr")
    .choices(LEVELS)
    .default("info" satisfies LogLevel);
}
