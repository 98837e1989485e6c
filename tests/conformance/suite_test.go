// Package conformance pins the public CRI validation suite. It has no code of
// its own: the imports keep what the suite needs in go.mod and go.sum.
// `cargo xtask conformance` builds sigs.k8s.io/cri-tools/cmd/critest from it.
package conformance

import (
	_ "github.com/onsi/ginkgo/v2"
	_ "sigs.k8s.io/cri-tools/pkg/benchmark"
	_ "sigs.k8s.io/cri-tools/pkg/validate"
)
