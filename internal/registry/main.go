// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command registry writes what is generated from package semconv: the registry in
// OpenTelemetry Weaver's format, and the tables of docs/metrics.md.
//
//	registry DIRECTORY DOCUMENT
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: registry DIRECTORY DOCUMENT")
	}
	dir, document := args[0], args[1]
	for name, content := range files() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	old, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	filled, err := fill(string(old), sections())
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return os.WriteFile(document, []byte(filled), 0o644)
}
