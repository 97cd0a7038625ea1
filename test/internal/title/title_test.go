// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package title_test

import (
	"os"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/test/internal/title"
)

func TestTitleErasesTheEnvironmentForOthersOnly(t *testing.T) {
	args, path := strings.Join(os.Args, " "), os.Getenv("PATH")
	const name = "VLLM::Worker_DP0_PP1_TP3_EP2"
	must.OK(t, title.Set(name))
	for file, want := range map[string]string{"cmdline": name, "comm": name[:15], "environ": ""} {
		b, err := os.ReadFile("/proc/self/" + file)
		must.OK(t, err)
		if got := strings.Trim(string(b), "\x00\n"); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if got := strings.Join(os.Args, " "); got != args {
		t.Errorf("the arguments are %q, want %q", got, args)
	}
	if got := os.Getenv("PATH"); got != path || path == "" {
		t.Errorf("PATH is %q, want %q", got, path)
	}
}
