#!/usr/bin/env bash
# Rescales two pipes in place, then by a rollout, and checks their pods after each step. Needs a running operator with
# resizes in place, the namespace acme-pipes, two nodes with room for 2 CPUs and 8 Gi each, kubectl and its current
# kubeconfig, the API in PIPE_SCALING_API_URL, and pipe-scaling on the PATH.
set -euo pipefail

organization=0d9b6c1e-58a4-4f0e-9c55-3f1f6a1c7e10
service=6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11
pause=registry.k8s.io/pause:3.10

fail() {
  echo "FAILED: $*" >&2
  kubectl get psc,deployments,pods --namespace acme-pipes --output wide >&2
  kubectl get psc "$service" --namespace acme-pipes --output yaml >&2
  exit 1
}

step() {
  printf '\n== %s\n' "$*"
}

in_pipes() {
  kubectl --namespace acme-pipes "$@"
}

# Prints the UID, restarts and CPU, then memory, in effect (as the kubelet reports them) of each pod, without those that
# are being deleted.
# shellcheck disable=SC2016 # The variable belongs to the template.
pods() {
  in_pipes get pods --selector pipes.clouddb.dev/service="$service" --sort-by=.metadata.name --output go-template='
{{- range .items }}{{ if not .metadata.deletionTimestamp }}
{{- $container := index .status.containerStatuses 0 }}
{{- .metadata.uid }} {{ $container.restartCount }} {{ $container.resources.requests.cpu }} {{ $container.resources.requests.memory }}
{{ end }}{{ end }}'
}

# expect_size <cores>: the pods of both pipes run with this size, and none has restarted.
expect_size() {
  local seen
  seen=$(pods)
  echo "$seen"
  [ "$(grep -c . <<<"$seen")" = 2 ] || fail "there are not two pods"
  ! grep --invert-match " 0 $1 $(($1 * 4))Gi\$" <<<"$seen" || fail "these pods do not run with $1 cores, or restarted"
}

uids() {
  pods | cut -d ' ' -f 1 | sort
}

refused() {
  if "$@"; then fail "this succeeded: $*"; fi
}

step "An organization with a service and a key"
pipe-scaling admin organization create --name 'Acme Corp' --tier basic --id "$organization"
pipe-scaling admin service create --organization "$organization" --name orders --pipes-namespace acme-pipes --id "$service"
key=$(pipe-scaling admin key create --organization "$organization" --name ci --role admin --output json)
PIPE_SCALING_KEY_ID=$(node -p 'JSON.parse(process.argv[1]).keyId' "$key")
PIPE_SCALING_KEY_SECRET=$(node -p 'JSON.parse(process.argv[1]).keySecret' "$key")
export PIPE_SCALING_KEY_ID PIPE_SCALING_KEY_SECRET

step "Two pipes get the default size of the tier"
for pipe in mysql-billing postgres-orders; do
  in_pipes apply --filename - <<END
apiVersion: apps/v1
kind: Deployment
metadata:
  name: $pipe
  labels:
    pipes.clouddb.dev/service: $service
    pipes.clouddb.dev/type: database
spec:
  strategy: { type: Recreate }
  selector: { matchLabels: { app: $pipe } }
  template:
    metadata:
      labels:
        pipes.clouddb.dev/service: $service
        pipes.clouddb.dev/type: database
        app: $pipe
    spec:
      terminationGracePeriodSeconds: 1
      # One on each node, so that both have room for the larger size.
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: { matchLabels: { pipes.clouddb.dev/service: $service } }
      containers:
        - name: pipe
          image: $pause
          resources:
            requests: { cpu: "1", memory: 4Gi }
            limits: { memory: 4Gi }
END
done
in_pipes wait --for=create psc/"$service" --timeout=1m
in_pipes wait --for=condition=Ready psc/"$service" --timeout=5m
expect_size 1
before=$(uids)

step "A rescale to 2 cores resizes the running pods"
pipe-scaling scaling set "$service" --cores 2 --watch --timeout 5m
in_pipes wait --for=condition=Ready psc/"$service" --timeout=1m
expect_size 2
[ "$(uids)" = "$before" ] || fail "the pods were replaced"
in_pipes rollout status deployment/mysql-billing --timeout=1m
in_pipes rollout status deployment/postgres-orders --timeout=1m

step "The strategy Rollout replaces the pods"
in_pipes patch psc "$service" --type=merge --patch '{"spec": {"strategy": "Rollout"}}'
pipe-scaling scaling set "$service" --cores 1 --watch --timeout 5m
in_pipes wait --for=condition=Ready psc/"$service" --timeout=1m
expect_size 1
[ -z "$(comm -12 <(uids) <(echo "$before"))" ] || fail "pods were not replaced"

step "A size that is too large and a wrong secret are refused"
refused pipe-scaling scaling set "$service" --cores 25
PIPE_SCALING_KEY_SECRET=wrong refused pipe-scaling services

step "Every step was seen to happen."
