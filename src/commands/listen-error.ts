import { type Config, ConfigError } from "../config/config.ts";

/** Returns the error for a host and port at which the server cannot listen, in words for the operator. */
export function toListenError(config: Config, error: NodeJS.ErrnoException): Error {
  if (error.code === "EADDRINUSE") {
    return new ConfigError([
      `--port ${config.port} is in use on ${config.host}; stop what uses it or choose another`,
    ]);
  }
  if (error.code === "EACCES") return new ConfigError([`--port ${config.port} may not be used by this user`]);
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND") {
    return new ConfigError([`--host ${config.host} is no address of this machine`]);
  }
  return error;
}
