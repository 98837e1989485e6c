// Package conformance pins the public CRI validation suite. It has no code of
// its own: the imports keep the suite's needs in go.mod and go.sum, so that
// `go test -c sigs.k8s.io/cri-tools/cmd/critest` builds without a network
// beyond the module proxy. `cargo xtask conformance` builds and runs it.
package conformance

import (
	_ "github.com/onsi/ginkgo/v2"
	_ "sigs.k8s.io/cri-tools/pkg/benchmark"
	_ "sigs.k8s.io/cri-tools/pkg/validate"
)
