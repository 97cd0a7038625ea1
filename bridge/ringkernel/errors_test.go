// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// codeError names its own error type.
type codeError struct{ code string }

func (e codeError) Error() string     { return "code " + e.code + " at 0x7f3a" }
func (e codeError) ErrorType() string { return e.code }

// ErrorType panics if the error is a nil pointer.
type pointerError struct{ code string }

func (e *pointerError) Error() string     { return e.code }
func (e *pointerError) ErrorType() string { return e.code }

type plainError struct{ text string }

func (e plainError) Error() string { return e.text }

func TestErrorsAreCountedByType(t *testing.T) {
	given := ringkernel.WithErrorType(func(err error) string {
		if errors.Is(err, fs.ErrNotExist) {
			return "not_found"
		}
		if err, ok := err.(*pointerError); ok {
			return err.code
		}
		return ""
	})
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"a Go type", plainError{"secret"}, "ringkernel_test.plainError"},
		{"its own name", codeError{"timeout"}, "timeout"},
		{"its own name, wrapped", fmt.Errorf("step 3: %w", codeError{"timeout"}), "timeout"},
		{"wrapped", fmt.Errorf("a: %w", fmt.Errorf("b: %w", plainError{"secret"})), "ringkernel_test.plainError"},
		{"a name from the option", &os.PathError{Op: "open", Path: "/secret", Err: fs.ErrNotExist}, "not_found"},
		{"no name from the option", &os.PathError{Op: "open", Path: "/secret", Err: fs.ErrExist}, "*fs.PathError"},
		{"a nil pointer", (*pointerError)(nil), "*ringkernel_test.pointerError"},
		{"a nil pointer, wrapped", fmt.Errorf("step 3: %w", (*pointerError)(nil)), "*ringkernel_test.pointerError"},
		{"not UTF-8", codeError{"bad\xff"}, "bad\uFFFD"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			w := newWorld(t, given)
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
