// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package mpstore

import (
	"errors"
	"os"
	"time"
)

// isLocked returns [errors.ErrUnsupported].
func isLocked(*os.File) (bool, error) { return false, errors.ErrUnsupported }

// Uptime returns [errors.ErrUnsupported].
func Uptime() (time.Duration, error) { return 0, errors.ErrUnsupported }
