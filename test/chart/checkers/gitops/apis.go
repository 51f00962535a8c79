// Package gitops holds what the tests ask of Argo CD and Flux: how they judge an object (health), and the
// definitions of Flux's kinds, which controller-gen makes of their types as Flux does itself.
package gitops

import (
	_ "github.com/fluxcd/helm-controller/api/v2"
	_ "github.com/fluxcd/kustomize-controller/api/v1"
	_ "github.com/fluxcd/source-controller/api/v1"
)
