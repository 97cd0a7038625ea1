// Package version finds the version of this module in the program's build
// information, for the scope of the metrics that the bridge emits.
package version

import (
	"runtime/debug"
	"sync"
)

const module = "github.com/nixl-otel/nixl-otel"

// Module returns the version of this module that the program was built with,
// such as v1.2.3. It is empty where the build doesn't record one: in tests, and
// in programs that replace the module by a directory.
var Module = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return find(info)
})

func find(info *debug.BuildInfo) string {
	found := info.Main
	for _, dep := range info.Deps {
		if dep.Path == module {
			found = *dep
		}
	}
	if found.Replace != nil {
		found = *found.Replace
	}
	if found.Path != module || found.Version == "(devel)" {
		return ""
	}
	return found.Version
}
