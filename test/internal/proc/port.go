// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// The ports that the kernel hands out by itself begin at 32768, on a system
// where nobody has changed that. One of those would be free when it is asked
// for, and could be somebody's own end of a connection when it is used.
const (
	firstPort = 20000
	lastPort  = 32767
)

var taken sync.Map // ports that were given out, which no two tests may share

// FreePort is a port of the loopback interface on which nobody listens, for
// programs that can't be told to choose one.
func FreePort(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		if _, used := taken.LoadOrStore(port, true); !used {
			return port
		}
	}
	tb.Fatal("no port is free")
	return 0
}
