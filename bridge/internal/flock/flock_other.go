// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package flock

import "os"

// Lock does nothing.
func Lock(*os.File) (unlock func()) { return func() {} }

// TryLock does nothing and returns true.
func TryLock(*os.File) bool { return true }
