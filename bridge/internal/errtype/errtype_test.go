// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package errtype_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
)

type named struct{ name string }

func (n *named) Error() string     { return "text of " + n.name }
func (n *named) ErrorType() string { return n.name }

func TestTypeOfAnError(t *testing.T) {
	path := &fs.PathError{Op: "open", Path: "/x", Err: io.EOF}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"Go type":                {path, "*fs.PathError"},
		"wrapped":                {fmt.Errorf("read: %w", path), "*fs.PathError"},
		"joined":                 {errors.Join(path, io.EOF), "*fs.PathError"},
		"joined and wrapped":     {fmt.Errorf("read: %w", errors.Join(fmt.Errorf("a: %w", path), io.EOF)), "*fs.PathError"},
		"several wrapped":        {fmt.Errorf("%w and %w", path, io.EOF), "*fs.PathError"},
		"text only":              {errors.New("text"), "*errors.errorString"},
		"named":                  {&named{"timeout"}, "timeout"},
		"named, wrapped":         {fmt.Errorf("read: %w", &named{"timeout"}), "timeout"},
		"named, joined":          {errors.Join(io.EOF, &named{"timeout"}), "timeout"},
		"empty name":             {&named{""}, "*errtype_test.named"},
		"name not UTF-8":         {&named{"time\xffout"}, "time\uFFFDout"},
		"a nil pointer":          {(*named)(nil), "*errtype_test.named"},
		"wraps a nil pointer":    {fmt.Errorf("read: %w", (*named)(nil)), "*errtype_test.named"},
		"wraps nil":              {fmt.Errorf("read: %w", nil), "*fmt.wrapError"},
		"wraps several, all nil": {fmt.Errorf("%w %w", nil, nil), "*fmt.wrapErrors"},
	} {
		if got := errtype.Of(c.err); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
