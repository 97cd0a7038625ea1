// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlenv

import (
	"slices"
	"strings"
)

// The variables that select an agent's exporter.
const (
	Exporter     = "NIXL_TELEMETRY_EXPORTER"
	MultiprocDir = "NIXL_TELEMETRY_MULTIPROC_DIR" // directory of the prometheus_mp exporter
	RankEnv      = "NIXL_TELEMETRY_RANK_ENV"      // name of the variable with the agent's rank
)

// buffer is the exporter that writes a ring. It is the default.
const buffer = "BUFFER"

// Enabled reports whether NIXL's telemetry is enabled.
func (e Env) Enabled() bool {
	v, _ := e.get(Enable)
	// convertTraits<bool> of NIXL's src/utils/common/configuration.h
	return slices.ContainsFunc([]string{"y", "yes", "on", "1", "true", "enable"},
		func(yes string) bool { return strings.EqualFold(v, yes) })
}

// WritesRing reports whether agents create a ring in [Env.Dir].
func (e Env) WritesRing() bool {
	exporter, ok := e.get(Exporter)
	return e.Enabled() && (!ok || exporter == buffer)
}

// StoreDir returns the directory of the agents' prometheus_mp stores, or "" if they don't
// create stores.
func (e Env) StoreDir() string {
	dir, _ := e.get(MultiprocDir)
	if !e.Enabled() || e.WritesRing() {
		return ""
	}
	return dir
}
