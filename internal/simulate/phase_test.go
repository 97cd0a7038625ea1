// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"testing"
	"time"
)

func TestWhenIsTheInverseOfOutside(t *testing.T) {
	p := Phase{Every: 10 * time.Second, For: 2 * time.Second}
	for up := time.Duration(0); up < 45*time.Second; up += 37 * time.Millisecond {
		if got := p.when(p.outside(up)); !p.inside(up) && got != up {
			t.Fatalf("%v became %v", up, got)
		}
	}
	if got := p.outside(25 * time.Second); got != 21*time.Second {
		t.Errorf("%v of 25 s are outside", got)
	}
}
