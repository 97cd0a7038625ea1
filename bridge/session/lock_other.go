// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package session

import "os"

func lock(*os.File) {}

// locked always returns false: sessions are only locked on Linux and macOS.
func locked(*os.File) bool { return false }
