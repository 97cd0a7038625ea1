// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package mpstore

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// fileName is the parsed name of a store: nixl.PID.MARKER.INSTANCE.mmap.
type fileName struct {
	pid      int64
	marker   int64 // start of the process, in nanoseconds since the epoch
	instance uint64
}

const (
	suffix        = ".mmap"
	stagingSuffix = ".staging" // MP_STORE_STAGING_SUFFIX: a store that its process is creating
)

var (
	fileNames = regexp.MustCompile(`^nixl\.(\d{1,19})\.(\d{1,19})\.(\d{1,20})\.mmap$`)
	// lockNames match the lock files of the processes that serve all stores to Prometheus.
	lockNames = regexp.MustCompile(`^nixl-owner\..*\.lock$`)
)

func parseName(name string) (f fileName, ok bool) {
	m := fileNames.FindStringSubmatch(name)
	if m == nil {
		return f, false
	}
	var errs [3]error
	f.pid, errs[0] = strconv.ParseInt(m[1], 10, 64)
	f.marker, errs[1] = strconv.ParseInt(m[2], 10, 64)
	f.instance, errs[2] = strconv.ParseUint(m[3], 10, 64)
	return f, errors.Join(errs[:]...) == nil
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
