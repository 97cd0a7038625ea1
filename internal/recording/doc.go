// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package recording reads and writes recordings: files with the events of agents, and the time
// at which each was read. docs/recording.md describes the format, JSON lines that are
// compressed with zstd.
//
// This package neither compresses nor decompresses, so that importing the engine doesn't add
// a zstd library to a program. A [Reader] treats its input as untrusted: its memory is
// bounded, and names can't refer to paths outside of a directory.
package recording
