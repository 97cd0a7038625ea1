// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

func TestOwnedByRefusesOtherOwners(t *testing.T) {
	w, r := ringOf(t, 1, 0)
	must.OK(t, r.Close())
	me := uint32(os.Geteuid())
	for _, mode := range []Mode{Consume, Observe} {
		_, err := OpenReader(w.Path(), mode, OwnedBy(me+1, me+2))
		var owner *OwnerError
		if !errors.As(err, &owner) || owner.Owner != me || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), w.Path()) {
			t.Errorf("%v: error is %v", mode, err)
		}
		for _, allowed := range [][]uint32{nil, {me + 1, me}} {
			r, err := OpenReader(w.Path(), mode, OwnedBy(allowed...))
			if err != nil {
				t.Errorf("%v, allowed %v: %v", mode, allowed, err)
				continue
			}
			_ = r.Close()
		}
	}
}
