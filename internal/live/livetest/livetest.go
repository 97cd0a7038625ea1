// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package livetest serves frames to tests.
package livetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/live"
)

// Serve serves the result of answer for each request on a socket, and returns its path. If the
// result is empty, it closes the connection. answer isn't called concurrently.
func Serve(t *testing.T, answer func(r live.Request) string) (path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nixl") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	l, err := live.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	serve := func(conn net.Conn) {
		defer conn.Close()
		for in := bufio.NewScanner(conn); in.Scan(); {
			var r live.Request
			if err := json.Unmarshal(in.Bytes(), &r); err != nil {
				t.Error(err)
			}
			mu.Lock()
			line := answer(r)
			mu.Unlock()
			if line == "" {
				return
			}
			fmt.Fprintln(conn, strings.ReplaceAll(line, "\n", ""))
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return path
}
