// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// parseName returns what the name of a store states: nixl.PID.START.INSTANCE.mmap. The start of the process
// is in nanoseconds since the epoch.
func parseName(name string) (h Header, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 || parts[0] != "nixl" || parts[4] != "mmap" {
		return h, false
	}
	pid, err1 := strconv.ParseUint(parts[1], 10, 63)
	start, err2 := strconv.ParseUint(parts[2], 10, 63)
	instance, err3 := strconv.ParseUint(parts[3], 10, 64)
	return Header{PID: int64(pid), Start: time.Unix(0, int64(start)), Instance: instance}, errors.Join(err1, err2, err3) == nil
}

// IsName reports whether a file name is that of a store.
func IsName(name string) bool {
	_, ok := parseName(name)
	return ok
}

// IsAuxiliary reports whether a file name is that of another file that NIXL creates in a
// directory of stores: a store that its process is creating (MP_STORE_STAGING_SUFFIX), or the lock of a
// process that serves all stores to Prometheus.
func IsAuxiliary(name string) bool {
	store, staging := strings.CutSuffix(name, ".staging")
	return staging && IsName(store) || strings.HasPrefix(name, "nixl-owner.") && strings.HasSuffix(name, ".lock")
}
