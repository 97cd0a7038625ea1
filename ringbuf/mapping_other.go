// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package ringbuf

import (
	"errors"
	"os"
)

// statFile returns [errors.ErrUnsupported].
func statFile(*os.File) (FileState, error) { return FileState{}, errors.ErrUnsupported }

// mapFile returns [errors.ErrUnsupported].
func mapFile(*os.File, int64, bool, bool) ([]byte, fileBacking, error) {
	return nil, nil, errors.ErrUnsupported
}
