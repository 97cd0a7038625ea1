package version

import (
	"runtime/debug"
	"testing"
)

func TestModuleVersionFromBuildInfo(t *testing.T) {
	main := func(path, version string) debug.Module { return debug.Module{Path: path, Version: version} }
	for name, c := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"dependency": {debug.BuildInfo{
			Main: main("example.com/user", "v9.0.0"), Deps: []*debug.Module{{Path: "other", Version: "v2.0.0"}, {Path: module, Version: "v1.2.3"}},
		}, "v1.2.3"},
		"main module":   {debug.BuildInfo{Main: main(module, "v1.2.3")}, "v1.2.3"},
		"not versioned": {debug.BuildInfo{Main: main(module, "(devel)")}, ""},
		"directory": {debug.BuildInfo{
			Main: main("example.com/user", "v9.0.0"), Deps: []*debug.Module{{Path: module, Version: "v0.0.0", Replace: &debug.Module{Path: "../nixl-otel"}}},
		}, ""},
		"another program": {debug.BuildInfo{Main: main("example.com/user", "v9.0.0")}, ""},
	} {
		if got := find(&c.info); got != c.want {
			t.Errorf("%s: version is %q, want %q", name, got, c.want)
		}
	}
}
