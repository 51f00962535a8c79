import { expect, it } from "vitest";
import { withRemedy } from "../../../src/controller/remedy.ts";

const DENIED =
  "deployments.apps \"pipe\" is forbidden: ValidatingAdmissionPolicy 'pipe-scaling-operator-controller.ns' with binding 'pipe-scaling-operator-controller.ns' denied request: ";

it.each([
  [
    "a quota",
    'pods "a" is forbidden: exceeded quota: small, requested: requests.cpu=3, used: requests.cpu=1, limited: requests.cpu=2',
    'raise the ResourceQuota "small", or request a smaller size',
  ],
  [
    "a quota of something that the pods do not have",
    'pods "a" is forbidden: failed quota: small: must specify limits.cpu for: pipe',
    'the ResourceQuota "small" requires what the message names',
  ],
  [
    "the maximum of a LimitRange",
    'pods "a" is forbidden: maximum memory usage per Container is 8Gi, but limit is 16Gi',
    "raise the maximum of the LimitRange in the namespace of the pipe (`kubectl get limitranges -o yaml`)",
  ],
  [
    "the minimum of a LimitRange",
    'pods "a" is forbidden: minimum cpu usage per Pod is 2, but request is 1.',
    "lower the minimum of the LimitRange",
  ],
  [
    "the ratio of a LimitRange",
    'pods "a" is forbidden: cpu max limit to request ratio per Container is 8, but provided ratio is 16.000000',
    "raise maxLimitRequestRatio of the LimitRange",
  ],
  [
    "the default limit of a LimitRange",
    'Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "4": must be less than or equal to cpu limit of 2',
    "raise that default or set limits.cpu in the pod template",
  ],
])("the message about %s ends with its remedy", (_, message, remedy) => {
  const told = withRemedy(message);
  expect(told.startsWith(`${message.replace(/\.$/, "")}; `)).toBe(true);
  expect(told).toContain(remedy);
});

it.each([
  "the controller may change only its own annotations in the metadata of a Deployment",
  "the controller may change only the size of a container in the spec of a Deployment",
  "the controller may change only the size of a container in the spec of a ReplicaSet",
  "the controller may change only the size of a container of a pod",
  "the controller may change only the resources of one container of a pipe",
  "the controller may change only the cpu and memory requests and the memory limit of a container, and set an existing cpu limit to the cpu request",
  "the controller may change nothing in the metadata of a ReplicaSet",
  "the controller may not change the field managers of a pod",
])("the message about the denial %j of the chart's policies names a webhook as the cause", (denial) => {
  const told = withRemedy(`${DENIED}${denial}`);
  expect(told).toMatch(/^something, probably a mutating admission webhook, changes more than the size/);
  expect(told).toContain(denial);
});

it.each([
  `${DENIED}the controller may set only the sizes of tiers, and the last good size that the annotation records`,
  "ValidatingAdmissionPolicy 'at-most-8gi' with binding 'at-most-8gi' denied request: no pipe may have more than 8 Gi here",
  'admission webhook "pipes.example.com" denied the request: too large',
  'Deployment.apps "a" is invalid: spec.template.spec.containers[0].resources.requests: Invalid value: "4": must be less than or equal to cpu limit of 2',
])("the message %j stays as it is", (message) => {
  expect(withRemedy(message)).toBe(message);
});
