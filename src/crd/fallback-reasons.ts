/** Reasons why a pipe is not resized in place. They are also label values of a metric. */
export const FALLBACK_REASONS = [
  "ContainerNotNamed",
  "ContainerNotRunning",
  "ContainerRestarts",
  "Deferred",
  "Forbidden",
  "Infeasible",
  "NotSupported",
  "NotSettled",
  "PodsNotLabeled",
  "Refused",
  "ResizeError",
  "ResizeTimeout",
  "Restarted",
  "Reverted",
  "SizeFromEnvironment",
  "SizeFromPercentage",
  "SizeNotRequested",
  "TemplateChanged",
] as const;

export type FallbackReason = (typeof FALLBACK_REASONS)[number];
