// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package byid_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel/byid"
)

func Example() {
	ctx := context.Background()
	rt := ringkernel.NewRuntime()
	rt.Register("worker")
	fmt.Println(byid.RecordReceive(ctx, rt, "worker"))
	err := byid.RecordReceive(ctx, rt, "wroker")
	fmt.Println(err, errors.Is(err, byid.ErrNotRegistered))
	// Output:
	// <nil>
	// record for "wroker": no ring kernel has this ID; register it first true
}
