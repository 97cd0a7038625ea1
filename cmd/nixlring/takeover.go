// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Commands that create rings take over an existing ring of the same name, as agents do. If
// the existing ring has a running agent, two writers would corrupt it.

// checkTakeover returns an error if a ring can't be created, or an agent may be writing to it. It doesn't change
// the file.
func checkTakeover(proc, path string) error {
	switch _, err := ringbuf.Peek(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; the file was not changed", patherr.Explain(patherr.Ring, path, err))
	}
	if ringfile.OpenForWriting(path) == diagnose.No {
		return nil
	}
	users := ringfile.FindUsers(proc, path)
	if users.Running == diagnose.No {
		return nil
	}
	who := "a process that can't be inspected may be writing to it"
	if writers := users.Writers(); len(writers) > 0 {
		who = fmt.Sprintf("%v has it open for writing", writers[0])
	}
	return fmt.Errorf("ring %s: %s; two writers corrupt a ring: use another directory", path, who)
}
