// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// The ports are below the kernel's default range of ephemeral ports, which
// starts at 32768. An ephemeral port that is free now may be the local port of
// another process's connection when the test's program uses it.
const (
	firstPort = 20000
	lastPort  = 32767
)

var taken sync.Map // ports that FreePort has returned; two tests must not share one

// FreePort returns a free TCP port of the loopback interface. It is for programs
// that can't choose a port themselves.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		must.OK(tb, l.Close())
		if _, used := taken.LoadOrStore(port, true); !used {
			return port
		}
	}
	tb.Fatal("no port is free")
	return 0
}
