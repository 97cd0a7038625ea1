// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	suffix        = ".mmap"
	stagingSuffix = ".staging" // MP_STORE_STAGING_SUFFIX: a store that its process is creating
)

var (
	fileNames = regexp.MustCompile(`^nixl\.(\d{1,19})\.(\d{1,19})\.(\d{1,20})\.mmap$`)
	// lockNames match the lock files of the processes that serve all stores to Prometheus.
	lockNames = regexp.MustCompile(`^nixl-owner\..*\.lock$`)
)

// parseName returns what the name of a store states: nixl.PID.START.INSTANCE.mmap. The start of the process
// is in nanoseconds since the epoch.
func parseName(name string) (h Header, ok bool) {
	m := fileNames.FindStringSubmatch(name)
	if m == nil {
		return h, false
	}
	var errs [3]error
	var start int64
	h.PID, errs[0] = strconv.ParseInt(m[1], 10, 64)
	start, errs[1] = strconv.ParseInt(m[2], 10, 64)
	h.Instance, errs[2] = strconv.ParseUint(m[3], 10, 64)
	h.Start = time.Unix(0, start)
	return h, errors.Join(errs[:]...) == nil
}

// IsName reports whether a file name is that of a store.
func IsName(name string) bool {
	if !strings.HasSuffix(name, suffix) { // faster than the regular expression
		return false
	}
	_, ok := parseName(name)
	return ok
}

// IsAuxiliary reports whether a file name is that of another file that NIXL creates in a
// directory of stores.
func IsAuxiliary(name string) bool {
	if store, ok := strings.CutSuffix(name, stagingSuffix); ok {
		return IsName(store)
	}
	return strings.HasPrefix(name, "nixl-owner.") && lockNames.MatchString(name)
}
