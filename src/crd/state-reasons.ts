/** One reason in a condition. All texts about it are derived from this. */
export interface ReasonEntry {
  /** For customers: the API returns it instead of cluster messages, which may name other tenants (docs/adr/0017). */
  readonly sentence: string;
  /** The condition that is True with this reason. With `Suspended`, none is, and Ready is Unknown. */
  readonly shows: "Ready" | "Reconciling" | "Stalled" | "Suspended";
  /** For operators, as Markdown. Links are relative to a folder in docs. */
  readonly meaning: string;
  readonly remedy: string;
}

/** Reasons of conditions that report no failure. */
export const STATE_REASON_TABLE = {
  Progressing: {
    sentence: "The size is being applied to the pipes, a few at a time.",
    shows: "Reconciling",
    meaning:
      "Pipes are being resized or wait for their turn, or the templates of resized pods follow; the message names them.",
    remedy:
      "Wait. A rollout whose new pods do not become available within `controller.config.rolloutTimeout` fails.",
  },
  Scaled: {
    sentence: "Every pipe runs the size.",
    shows: "Ready",
    meaning: "Every pod and every pod template of every pipe has the desired size.",
    remedy: "Nothing.",
  },
  WaitingForWindow: {
    sentence: "The pipes wait for the rollout window of the service.",
    shows: "Reconciling",
    meaning:
      "Pipes wait for the rollout window of the service or its organization; the message has the time at which it opens.",
    remedy: "Wait, or [roll out immediately](../how-to/rollout-windows.md#roll-out-outside-of-the-window).",
  },
  WaitingForOwner: {
    sentence: "The pipes wait until the team that runs them restarts them.",
    shows: "Reconciling",
    meaning:
      "The pipes that are left are StatefulSets whose owner keeps pods from rollouts, with the update strategy `OnDelete` or a `partition`; the message names the first one.",
    remedy:
      "Set `spec.updateStrategy.type` to `RollingUpdate`, or lower the partition. The controller changes neither.",
  },
  TierLimited: {
    sentence:
      "Every pipe runs the largest size of the organization's tier, which is smaller than the requested size.",
    shows: "Ready",
    meaning: "Every pipe runs the maximum size of the organization's tier; the spec requests more.",
    remedy: "Request a smaller size, or move the organization to a larger tier.",
  },
  Suspended: {
    sentence: "Scaling of this service is suspended: the pipes keep their size until it is resumed.",
    shows: "Suspended",
    meaning: "`spec.suspend` is true, so the controller does not resize the pipes.",
    remedy: "Set `spec.suspend` to false.",
  },
  Deleting: {
    sentence: "The service is being set up again.",
    shows: "Reconciling",
    meaning:
      "The PipeScaling is being deleted. The deletion resizes no pipe; if the service has pipes, the controller creates it again with their size, suspended if their sizes differ.",
    remedy:
      "Wait. If the reason persists, a finalizer blocks the deletion: `kubectl get psc <service> -o yaml` shows it.",
  },
} as const satisfies Readonly<Record<string, ReasonEntry>>;
