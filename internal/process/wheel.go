// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
)

// A Python wheel of NIXL installs its libraries in the directory .PACKAGE.mesonpy.libs or
// PACKAGE.libs, and its version is in the name of the directory PACKAGE-VERSION.dist-info next
// to it. PACKAGE is nixl, or nixl_ with the version of CUDA, such as nixl_cu12. The libraries
// themselves have no version.
const (
	mesonLibs  = ".mesonpy.libs" // of meson-python
	wheelLibs  = ".libs"         // of auditwheel
	distInfo   = ".dist-info"
	maxWheels  = 4       // wheels of a process
	maxSite    = 8 << 10 // entries of the directory in which a wheel is installed
	maxVersion = 64      // bytes
)

// wheel is where a library is installed. It is empty if the library isn't part of a wheel.
type wheel struct {
	site    string // absolute path in the process's root
	pkg     string
	deleted bool // another version may be installed there now
}

// wheelOf returns the wheel of a library.
func wheelOf(file string) wheel {
	file, deleted := strings.CutSuffix(file, " (deleted)")
	site, dir := path.Split(path.Dir(file))
	pkg, found := strings.CutSuffix(strings.TrimPrefix(dir, "."), mesonLibs)
	if !found {
		pkg, found = strings.CutSuffix(dir, wheelLibs)
	}
	if !found || !strings.HasPrefix(pkg, "nixl") || !consistsOf(pkg, lower+digits+"_") {
		return wheel{}
	}
	return wheel{path.Clean(site), pkg, deleted}
}

var errNoVersion = errors.New("the version isn't known, or isn't the only one")

// version returns the installed version of a package. readDir reads the directory in which it
// is installed, as [os.File.ReadDir] does.
func version(pkg string, readDir func(n int) ([]fs.DirEntry, error)) (string, error) {
	found := ""
	for read := 0; read < maxSite; {
		entries, err := readDir(256)
		for _, e := range entries {
			v, isInfo := strings.CutSuffix(e.Name(), distInfo)
			v, ofPackage := strings.CutPrefix(v, pkg+"-")
			if !isInfo || !ofPackage {
				continue
			}
			if found != "" || !isVersion(v) || !e.IsDir() {
				return "", errNoVersion
			}
			found = v
		}
		switch read += len(entries); {
		case errors.Is(err, io.EOF) && found != "":
			return found, nil
		case errors.Is(err, io.EOF):
			return "", errNoVersion
		case err != nil:
			return "", err
		}
	}
	return "", errNoVersion
}

// isVersion reports whether s may be the version of a Python package.
func isVersion(s string) bool {
	return s != "" && len(s) <= maxVersion && consistsOf(s[:1], digits) && consistsOf(s, lower+upper+digits+".+!_")
}

const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func consistsOf(s, characters string) bool { return strings.Trim(s, characters) == "" }
