/**
 * The environment this program was started with. The only place of the local
 * cluster that reads it: everything else takes an Environment as an argument,
 * so that a test can give its own.
 */
export type Environment = Readonly<Record<string, string | undefined>>;

// biome-ignore lint/style/noProcessEnv: the one place where the environment is read
export const environment: Environment = process.env;
