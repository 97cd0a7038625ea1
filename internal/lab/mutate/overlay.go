// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// raced are the files of ringbuf whose accesses to the header agents can interrupt.
var raced = []string{"commit.go", "memory.go", "observe.go", "reader.go", "restart.go"}

// overlay writes an overlay for the go command, which replaces sync/atomic in raced, and one
// file with an edited one if edited isn't "". It returns the path of the overlay.
func overlay(root, dir, file, edited string) (string, error) {
	replace := make(map[string]string)
	add := func(file, content string) error {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-")+".txt") // it is part of no package
		replace[filepath.Join(root, file)] = to
		return os.WriteFile(to, []byte(content), 0o600)
	}
	var errs []error
	if edited != "" {
		errs = append(errs, add(file, edited))
	}
	for _, name := range raced {
		name = "ringbuf/" + name
		content := edited
		if name != file || edited == "" {
			b, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				return "", err
			}
			content = string(b)
		}
		const old, replacement = `"sync/atomic"`, `"github.com/nixl-otel/nixl-otel/internal/lab/mutate/atomic"`
		if !strings.Contains(content, old) {
			return "", fmt.Errorf("%s doesn't import sync/atomic; adjust the list of files", name)
		}
		errs = append(errs, add(name, strings.Replace(content, old, replacement, 1)))
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	path := filepath.Join(dir, "overlay.json")
	return path, errors.Join(append(errs, err, os.WriteFile(path, list, 0o600))...)
}
