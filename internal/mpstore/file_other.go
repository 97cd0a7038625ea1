// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mpstore

import (
	"errors"
	"os"
)

// isLocked returns [errors.ErrUnsupported].
func isLocked(*os.File) (bool, error) { return false, errors.ErrUnsupported }
