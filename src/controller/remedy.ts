interface Remedy {
  readonly pattern: RegExp;
  /** The end of a sentence. `name`: the first group of the pattern. */
  readonly text: (name: string) => string;
}

/** The message of the API server does not name the LimitRange. */
const LIMIT_RANGE = "LimitRange in the namespace of the pipe (`kubectl get limitranges -o yaml`)";

/** The first one whose pattern is in the message of the API server applies. */
const REMEDIES: readonly Remedy[] = [
  {
    pattern: /failed quota: ([^,: ]+): must specify/,
    text: (name) =>
      `the ResourceQuota "${name}" requires what the message names: set it in the pod template, set a default in a LimitRange, or remove it from the quota`,
  },
  {
    pattern: /exceeded quota: ([^,: ]+)/,
    text: (name) => `raise the ResourceQuota "${name}", or request a smaller size`,
  },
  {
    pattern: /minimum (?:\w+) usage per (?:Container|Pod) is/,
    text: () => `lower the minimum of the ${LIMIT_RANGE}, or request a larger size`,
  },
  {
    pattern: /maximum (?:\w+) usage per (?:Container|Pod) is/,
    text: () => `raise the maximum of the ${LIMIT_RANGE}, or request a smaller size`,
  },
  {
    pattern: /limit to request ratio per/,
    text: () =>
      `raise maxLimitRequestRatio of the ${LIMIT_RANGE}, or set limits in the pod template that fit the size`,
  },
  {
    pattern: /^Pod .* must be less than or equal to (\w+) limit/s,
    text: (resource) =>
      `the pod template sets no limits.${resource}, so the limit is the default of the ${LIMIT_RANGE}: raise that default or set limits.${resource} in the pod template, then restart the pipe so that its pods get the limit`,
  },
];

/**
 * Adds to the message of the API server what people can do. It names the quota, but not the LimitRange; the controller
 * has no permission to read either.
 */
export function withRemedy(message: string): string {
  for (const { pattern, text } of REMEDIES) {
    const found = pattern.exec(message);
    if (found) return `${message.replace(/\.$/, "")}; ${text(found[1] ?? "")}`;
  }
  return CHANGED_BY_WEBHOOK.test(message) ? `${WEBHOOK} (${message})` : message;
}

/**
 * The denials of the chart's policies for fields that the controller never writes. Mutating admission comes before
 * them, so something there has changed these fields.
 */
const CHANGED_BY_WEBHOOK =
  /ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: the controller may (?:change only its own annotations in|change nothing in|change only the size of a container|change only the resources of one container|change only the cpu and memory requests|not change the field managers of)/;

const WEBHOOK =
  "something, probably a mutating admission webhook, changes more than the size in each write of the controller, which the admission policies of the controller do not allow: exempt its service account there; `kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies` lists the candidates";
