// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package store

import (
	"errors"
	"os"
)

// held returns [errors.ErrUnsupported].
func held(*os.File) (bool, error) { return false, errors.ErrUnsupported }
