// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package scope returns the version of the instrumentation scopes of the packages under
// bridge.
package scope

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/nixl-otel/nixl-otel"

// devel is Go's name for an unknown version.
const devel = "(devel)"

// Version returns the version of this module in the running program, as the Go
// toolchain recorded it: v1.2.3, a pseudo-version, or (devel).
var Version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return devel
	}
	return versionIn(info)
})

func versionIn(info *debug.BuildInfo) string {
	if info.Main.Path == module {
		return known(info.Main.Version)
	}
	for _, dep := range info.Deps {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		return known(dep.Version)
	}
	return devel
}

func known(version string) string {
	if version == "" {
		return devel
	}
	return version
}
