// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command registry writes what is generated from package semconv: the registry in
// OpenTelemetry Weaver's format, the tables of docs/metrics.md and bridge/README.md, and
// the receiver's metadata.yaml.
//
//	registry DIRECTORY DOCUMENT BRIDGE METADATA
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
	if len(args) != 4 {
		return errors.New("usage: registry DIRECTORY DOCUMENT BRIDGE METADATA")
	}
	for name, content := range files() {
		if err := os.WriteFile(filepath.Join(args[0], name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	document, bridge := sections()
	return errors.Join(inMarkdown.fillFile(args[1], document), inMarkdown.fillFile(args[2], bridge), inMetadata.fillFile(args[3], metadata()))
}

func (m markers) fillFile(path string, sections map[string]string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled, err := m.fill(string(old), sections)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}
