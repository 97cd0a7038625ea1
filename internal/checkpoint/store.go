// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"context"
	"strings"
)

// Store keeps checkpoints beyond the life of the process. It doesn't have to
// survive a crash of the machine. Its calls may be slow, fail or hang; only one
// is made at a time.
type Store interface {
	// Get returns what was stored under key, nil if nothing was.
	Get(ctx context.Context, key string) ([]byte, error)
	// Apply stores all of the values, or none.
	Apply(ctx context.Context, ops []Op) error
}

// Op stores a value, or removes it if it is nil.
type Op struct {
	Key   string
	Value []byte
}

// Key is where the checkpoint of the agent with a path is stored. All keys
// that a [Saver] is given must be made by it.
func Key(path string) string { return keyPrefix + path }

const (
	keyPrefix = "agent:"
	// A store can't list its keys. This is where their paths are stored.
	indexKey       = "agents"
	indexSeparator = "\x00" // the one byte that no path has
)

func path(key string) string { return strings.TrimPrefix(key, keyPrefix) }
