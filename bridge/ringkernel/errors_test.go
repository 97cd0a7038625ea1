// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
)

// codeError names its own error type.
type codeError struct{ code string }

func (e codeError) Error() string     { return "code " + e.code + " at 0x7f3a" }
func (e codeError) ErrorType() string { return e.code }

type plainError struct{ text string }

func (e plainError) Error() string { return e.text }

func TestErrorsAreCountedByType(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a Go type":     {fmt.Errorf("a: %w", plainError{"secret"}), "ringkernel_test.plainError"},
		"its own name":  {fmt.Errorf("step 3: %w", codeError{"timeout"}), "timeout"},
		"a nil pointer": {(*plainError)(nil), "*ringkernel_test.plainError"},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			k.Error(t.Context(), tt.err)
			k.Error(t.Context(), tt.err)
			got := metrictest.Values(w.collect(t))
			series := "ringkernel.errors{error.type=" + tt.want + ",ringkernel.kernel.id=k}"
			if got[series] != 2 {
				t.Errorf("%s = %v, want 2, in %v", series, got[series], got)
			}
			for s := range got {
				if strings.Contains(s, "secret") {
					t.Errorf("the error's text is in %s", s)
				}
			}
		})
	}
}

func TestRegisterWithAnEmptyIDReportsAnErrorAndRecordsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := metrictest.Handled(t)
		w := newWorld(t)
		k := w.Register("")
		k.Received(t.Context())
		if k != nil || w.Summary().KernelCount != 0 {
			t.Errorf("kernel %v is registered", k)
		}
		if len(errs()) != 1 || !strings.Contains(errs()[0], "the ID is empty") {
			t.Errorf("errors: %v", errs())
		}
	})
}
