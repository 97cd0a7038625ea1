// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"fmt"

	"github.com/nixl-otel/nixl-otel/bridge/gpu"
)

// Without a GPU, this example prints nothing.
func ExampleNew() { //nolint:testableexamples // what it prints depends on the machine
	gpus := gpu.New()
	defer gpus.Close()
	for _, s := range gpus.Samples() {
		if s.Power != nil {
			fmt.Println(s.Name, s.UUID, *s.Power, "W")
		}
	}
}
