// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"runtime/debug"
	"testing"
)

func TestVersionIsThatOfThisModule(t *testing.T) {
	other := &debug.Module{Path: "example.com/other", Version: "v9.9.9"}
	for _, tt := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a dependency", debug.BuildInfo{Deps: []*debug.Module{other, {Path: module, Version: "v1.2.3"}}}, "v1.2.3"},
		{
			"replaced by a version",
			debug.BuildInfo{Deps: []*debug.Module{{
				Path: module, Version: "v1.2.3",
				Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"},
			}}},
			"v1.2.4",
		},
		{
			"replaced by a directory",
			debug.BuildInfo{Deps: []*debug.Module{{Path: module, Version: "v1.2.3", Replace: &debug.Module{Path: "../x"}}}},
			"(devel)",
		},
		{"the main module", debug.BuildInfo{Main: debug.Module{Path: module, Version: "v1.3.0"}}, "v1.3.0"},
		{"the main module, version unknown", debug.BuildInfo{Main: debug.Module{Path: module}}, "(devel)"},
		{"not in the program", debug.BuildInfo{Deps: []*debug.Module{other}}, "(devel)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := versionIn(&tt.info); got != tt.want {
				t.Errorf("version %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVersionIsNeverEmpty(t *testing.T) {
	if Version() == "" {
		t.Error("Version() is empty")
	}
}
