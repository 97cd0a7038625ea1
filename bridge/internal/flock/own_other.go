// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package flock

import "os"

// Own does nothing and returns true.
func Own(*os.File) bool { return true }
