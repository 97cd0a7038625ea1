// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// library returns the line of a library that is mapped.
func (h *host) library(path string) string {
	return fmt.Sprintf("7f0000000000-7f0000001000 r-xp 00000000 fe:00 5678      %s\n", filepath.Join(h.root, path))
}

func TestVersionOfNIXLIsThatOfTheOnlyWheelInUse(t *testing.T) {
	const site = "/venv/lib/python3.12/site-packages/"
	meson, repaired := site+".nixl_cu12.mesonpy.libs/libnixl.so", site+"nixl_cu12.libs/libnixl_common-1a2b3c4d.so"
	long := "1." + strings.Repeat("1", maxVersion)
	for _, tt := range []struct {
		name      string
		installed []string // below the root; those that end with / are directories
		mapped    []string
		want      string
	}{
		{"meson-python", []string{site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson, site + ".nixl_cu12.mesonpy.libs/libnixl_build.so"}, "1.3.0"},
		{"auditwheel", []string{site + "nixl_cu12-1.3.0.dist-info/"}, []string{repaired, meson}, "1.3.0"},
		{"package nixl", []string{site + "nixl-0.9.1+cu12.dist-info/"}, []string{site + ".nixl.mesonpy.libs/libnixl.so"}, "0.9.1+cu12"},
		{"other packages", []string{site + "nixl-1.4.0.dist-info/", site + "nixl_cu13-1.4.1.dist-info/", site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson}, "1.3.0"},
		{"two packages of one version", []string{site + "nixl_cu13-1.3.0.dist-info/", site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson, site + "nixl_cu13.libs/libnixl.so"}, "1.3.0"},
		{"two packages of two versions", []string{site + "nixl_cu13-1.4.0.dist-info/", site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson, site + "nixl_cu13.libs/libnixl.so"}, ""},
		{"two versions of one package", []string{site + "nixl_cu12-1.4.0.dist-info/", site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson}, ""},
		{"also from elsewhere", []string{site + "nixl_cu12-1.3.0.dist-info/"}, []string{meson, "/usr/local/lib/libnixl.so"}, ""},
		{"only from elsewhere", []string{"/usr/local/nixl-1.3.0.dist-info/"}, []string{"/usr/local/lib/libnixl.so"}, ""},
		{"removed since", []string{site + "nixl_cu12-1.4.0.dist-info/"}, []string{meson + " (deleted)"}, ""},
		{"a file", []string{site + "nixl_cu12-1.3.0.dist-info"}, []string{meson}, ""},
		{"not a version", []string{site + "nixl_cu12-{}.dist-info/"}, []string{meson}, ""},
		{"too long", []string{site + "nixl_cu12-" + long + ".dist-info/"}, []string{meson}, ""},
		{"not installed", nil, []string{meson}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			for _, path := range tt.installed {
				h.mkdir(filepath.Dir(filepath.Join(h.root, path)))
				if strings.HasSuffix(path, "/") {
					h.mkdir(filepath.Join(h.root, path))
				} else {
					h.write(filepath.Join(h.root, path), "")
				}
			}
			maps := ""
			for _, path := range tt.mapped {
				maps += h.library(path)
			}
			h.setProcess(task{pid: 10, environ: enabled, maps: maps})
			for _, versions := range []bool{true, false} {
				want := ""
				if versions {
					want = tt.want
				}
				list := h.scan(New(Config{Proc: h.proc, Versions: versions}), 0)
				if len(list) != 1 || list[0].Version != want {
					t.Errorf("version is wanted: %v: %+v, want %q", versions, list, want)
				}
			}
		})
	}
}

// A container chooses its links and how many files it has.
func TestVersionIsLimitedToTheRootOfTheProcess(t *testing.T) {
	h := newHost(t)
	outside := filepath.Join(t.TempDir(), "site-packages")
	h.mkdir(filepath.Join(outside, "nixl-1.3.0.dist-info"))
	h.link(outside, filepath.Join(h.root, "site-packages"))
	h.setProcess(task{pid: 10, environ: enabled, maps: h.library("/site-packages/nixl.libs/libnixl.so")})
	if list := h.scan(New(Config{Proc: h.proc, Versions: true}), 0); len(list) != 1 || list[0].Version != "" {
		t.Errorf("%+v", list)
	}
}

func TestVersionIsUnknownIfTheDirectoryIsTooLarge(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "nixl-1.3.0.dist-info"), 0o750))
	for i := range maxSite {
		must.OK(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	f, err := os.Open(dir)
	must.OK(t, err)
	defer f.Close()
	if v, err := version("nixl", f.ReadDir); err == nil {
		t.Errorf("version %s", v)
	}
}

// Wheels are found by the paths that the process chooses.
func FuzzWheel(f *testing.F) {
	f.Add("/site-packages/nixl.libs/libnixl.so")
	f.Add("/.nixl_cu12.mesonpy.libs/libnixl.so (deleted)")
	f.Fuzz(func(t *testing.T, file string) {
		w := wheelOf("/" + file)
		if w.pkg != "" && (!filepath.IsAbs(w.site) || strings.ContainsAny(w.pkg, "/.\n")) {
			t.Errorf("%+v", w)
		}
	})
}
