#!/usr/bin/env bash
# Installs the chart into the cluster of the current kubeconfig, from an image that the nodes already have, and tests
# it. Writes the certificate of the API to tls.crt of the current folder.
#
#   test/e2e/real-cluster/install.sh <repository> <tag>
set -euo pipefail

repository=${1:?name the repository of the image}
tag=${2:?name the tag of the image}
chart=$(dirname "${BASH_SOURCE[0]}")/../../../deploy/chart/pipe-scaling-operator
namespace=pipe-scaling-system

kubectl create namespace "$namespace"
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted
kubectl create namespace acme-pipes

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout tls.key -out tls.crt
kubectl create secret tls pipe-scaling-api-tls --namespace "$namespace" --cert tls.crt --key tls.key

helm install pipe-scaling-operator "$chart" --namespace "$namespace" --wait --timeout 5m \
  --set image.repository="$repository",image.tag="$tag",image.pullPolicy=Never \
  --set 'pipes.namespaces={acme-pipes}' --set api.tls.secretName=pipe-scaling-api-tls
helm test pipe-scaling-operator --namespace "$namespace"
