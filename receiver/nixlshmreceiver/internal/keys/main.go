// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command keys writes what is generated from config.schema.yaml: the table of the keys in
// README.md, and an example with every key.
//
//	keys SCHEMA METADATA README EXAMPLE
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "keys:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: keys SCHEMA METADATA README EXAMPLE")
	}
	var g generator
	if err := errors.Join(read(args[0], &g.schema), read(args[1], &g.metadata)); err != nil {
		return err
	}
	g.example.WriteString(header)
	for name, p := range g.schema.Properties.all() {
		if err := g.key("", name, p, name != "directories"); err != nil {
			return err
		}
	}
	g.example.WriteString(footer)
	readme, err := os.ReadFile(args[2])
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(readme), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no %q or no %q", args[2], begin, end)
	}
	text := before + begin + "| key | default | |\n|---|---|---|\n" + g.table.String() + end + after
	return errors.Join(os.WriteFile(args[2], []byte(text), 0o644), os.WriteFile(args[3], []byte(g.example.String()), 0o644))
}

const (
	begin = "<!-- generated from config.schema.yaml -->\n"
	end   = "<!-- end of generated text -->"

	header = `# Generated from receiver/nixlshmreceiver/config.schema.yaml. DO NOT EDIT.
#
# Every key of the receiver nixl_shm with its default. Keys without a default, and discovery,
# are commented out.
#
#   NIXL_TELEMETRY_DIR  directory of the rings [/tmp]

receivers:
  nixl_shm:
`
	footer = `
exporters:
  debug: # one line per collection on the terminal
    verbosity: basic

service:
  pipelines:
    metrics:
      receivers: [nixl_shm]
      exporters: [debug]
`
)

func read(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
