// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package procs

import (
	"errors"
	"os"
)

// FileOf returns only the path: there are no rings on this system.
func FileOf(path string) (File, error) { return absolute(path) }

func exited(err error) bool { return errors.Is(err, os.ErrNotExist) }
