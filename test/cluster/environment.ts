/**
 * The environment of this process. Only this module reads it: all other code has an Environment as an argument, so that
 * tests can pass their own.
 */
export type Environment = Readonly<Record<string, string | undefined>>;

// biome-ignore lint/style/noProcessEnv: the one place where the environment is read
export const environment: Environment = process.env;
