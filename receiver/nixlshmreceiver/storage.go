// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/nixl-otel/nixl-otel/internal/engine"
)

// checkpoints implements [engine.Storage] with the client of a storage extension.
type checkpoints struct{ client storage.Client }

// openCheckpoints returns a client of the storage extension that the key storage names.
func openCheckpoints(ctx context.Context, host component.Host, id, owner component.ID) (*checkpoints, error) {
	extension, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("storage: there is no extension %q: add it to service::extensions", id)
	}
	source, ok := extension.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: extension %q is not a storage extension: use file_storage, for example", id)
	}
	client, err := source.GetClient(ctx, component.KindReceiver, owner, "")
	if err != nil {
		return nil, fmt.Errorf("storage: extension %q: %w; check that no other Collector uses its directory, and that this one can write there", id, err)
	}
	return &checkpoints{client}, nil
}

// Get returns the values of keys, nil for those without one.
func (c *checkpoints) Get(ctx context.Context, keys []string) ([][]byte, error) {
	batch := make([]*storage.Operation, len(keys))
	for i, key := range keys {
		batch[i] = storage.GetOperation(key)
	}
	err := c.client.Batch(ctx, batch...)
	values := make([][]byte, len(keys))
	for i, op := range batch {
		values[i] = op.Value
	}
	return values, err
}

// Apply stores all values or none.
func (c *checkpoints) Apply(ctx context.Context, ops []engine.Op) error {
	batch := make([]*storage.Operation, len(ops))
	for i, op := range ops {
		batch[i] = storage.SetOperation(op.Key, op.Value)
	}
	return c.client.Batch(ctx, batch...)
}

// close closes the client. It waits until ctx is done at most, because the extension
// may hang.
func (c *checkpoints) close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- c.client.Close(ctx) }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("storage: the storage extension did not close in time: %w", ctx.Err())
	}
}
