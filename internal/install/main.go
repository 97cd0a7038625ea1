// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command install writes docs/install.md. Before the first release, it says how to build
// each part, and from then on, how to install the newest version in CHANGELOG.md.
//
//	install CHANGELOG DOCUMENT
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"text/template"
)

//go:generate go run . ../../CHANGELOG.md ../../docs/install.md

//go:embed install.md.tmpl
var text string

// released is the heading of a release, unlike that of what isn't released yet.
var released = regexp.MustCompile(`(?m)^## v?(\d+\.\d+\.\d+\S*)`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: install CHANGELOG DOCUMENT")
	}
	changelog, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	document, err := render(string(changelog))
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], document, 0o644)
}

// render returns the document for the newest release in the changelog.
func render(changelog string) ([]byte, error) {
	var version string
	if m := released.FindStringSubmatch(changelog); m != nil {
		version = m[1]
	}
	t, err := template.New("install.md").Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct{ Version string }{version})
	return b.Bytes(), err
}
