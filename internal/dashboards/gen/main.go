// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the project's dashboards to a directory.
package main

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/nixl-otel/nixl-otel/internal/dashboards"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: gen DIR")
	}
	files, err := dashboards.Files()
	for name, text := range files {
		path := filepath.Join(os.Args[1], name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
	}
	if err != nil {
		log.Fatal("gen: ", err)
	}
}
