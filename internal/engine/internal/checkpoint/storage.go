// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"strings"
)

// Storage stores checkpoints. It must survive a crash of the process, but
// not of the machine. Its calls may be slow, fail or hang. A [Saver] makes one call at a
// time.
type Storage interface {
	// Get returns the value of a key, or nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Apply applies all of ops, or none.
	Apply(ctx context.Context, ops []Op) error
}

// Op stores a value, or removes the key if the value is nil.
type Op struct {
	Key   string
	Value []byte
}

// Key returns the key of an agent's checkpoint. All keys that are passed to a [Saver] must
// come from it.
func Key(path string) string { return keyPrefix + path }

const (
	keyPrefix = "agent:"
	// A storage extension can't list its keys, so their paths are stored under this key.
	indexKey       = "agents"
	indexSeparator = "\x00" // paths don't contain NUL
)

func path(key string) string { return strings.TrimPrefix(key, keyPrefix) }
