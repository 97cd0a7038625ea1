// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package procs

import (
	"errors"
	"os"
)

// FileOf only returns the path: rings are not supported on this platform.
func FileOf(path string) (File, error) { return absolute(path) }

func exited(err error) bool { return errors.Is(err, os.ErrNotExist) }
