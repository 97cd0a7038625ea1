// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package procs

import "github.com/nixl-otel/nixl-otel/ringbuf"

// FileOf returns nothing: rings are not supported on this platform.
func FileOf(string) (ringbuf.FileID, error) { return ringbuf.FileID{}, nil }
